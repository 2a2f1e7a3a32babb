// npm run schemathesis -- [--examples N] [--seed S]    the API against its OpenAPI document, by an independent tool (docs/fuzzing.md)
import { spawn } from 'node:child_process'
import { createServer, request as ask, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { PRIVATE_KEY, type User } from '../harness.ts'
import { Api } from './api.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const CHECKS = [
  'not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_schema_conformance', 'negative_data_rejection',
  'unsupported_method',
]

/**
 * Signs what it passes on: tokens cover path and body, which the tool knows nothing of. Where the tool leaves the credentials out to see
 * that they are needed, nothing is signed.
 */
class SigningProxy {
  readonly #user: User
  readonly #server: Server
  readonly statuses = new Map<number, number>()

  constructor(user: User) {
    this.#user = user
    this.#server = createServer((request, response) => void this.#pass(request, response).catch((error: unknown) => {
      response.destroy(error as Error)
    }))
  }

  open(): Promise<string> {
    return new Promise((resolve) => this.#server.listen(0, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`)
    }))
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = Buffer.concat(pieces)
    const [method, uri] = [request.method ?? 'GET', request.url ?? '/']
    const { host: _host, 'transfer-encoding': _encoding, ...headers } = request.headers
    const hasCredentials = headers.authorization !== undefined && headers['x-api-key'] !== undefined
    const signed = hasCredentials
      ? await signRequest({ apiKey: this.#user.apiKey, privateKey: PRIVATE_KEY, method, uri, body: body.toString('utf8') }) : null
    const length = body.length > 0 ? { 'content-length': String(body.length) } : {}
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const own = signed ? requestHeaders(signed, this.#user.apiKey) : {}
      ask(`${this.#user.base}${uri}`, { method, headers: { ...headers, ...own, ...length }, agent: false }, resolve).once('error', reject).end(body)
    })
    const status = answer.statusCode ?? 0
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
    response.writeHead(status, answer.headers)
    answer.pipe(response)
  }
}

const { values } = parseArgs({ options: {
  python: { type: 'string' }, examples: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' },
} })
for (const name of ['examples', 'seed'] as const) {
  if (/^[1-9]\d{0,6}$/.test(values[name])) continue
  console.error(`--${name}: must be a whole number from 1, not ${JSON.stringify(values[name])}`)
  process.exit(2)
}
const api = new Api()
try {
  await api.open()
  const proxy = new SigningProxy(api.user)
  const url = await proxy.open()
  const tool = spawn(values.python as string, [
    '-m', 'schemathesis.cli', 'run', join(ROOT, 'docs/openapi.json'), '--url', url, '--checks', CHECKS.join(','), '--seed', values.seed,
    '--max-examples', values.examples, '--exclude-path-regex', '(/events|/stream|/metrics)$', '--request-timeout', '60',
    '--continue-on-failure', '--no-color', '--suppress-health-check', 'all', '--generation-database', ':memory:',
  ], { stdio: 'inherit', env: { ...process.env, PYTHONUTF8: '1' }, cwd: api.home })
  process.exitCode = await new Promise<number>((resolve) => tool.once('close', (code) => resolve(code ?? 1)))
  proxy.close()
  const counts = [...proxy.statuses].sort(([a], [b]) => a - b)
  console.log(`${counts.reduce((sum, [, count]) => sum + count, 0)} requests; ${counts.map(([status, count]) => `${status}: ${count}`).join(', ')}`)
} finally {
  await api.close()
}
