// Tests the API against its OpenAPI document with an independent tool (docs/fuzzing.md). Command
// line: `npm run schemathesis -- [--examples N] [--seed S]`.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import {
  createServer,
  request as ask,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { document } from '../openapi-assertions.ts'
import { PRIVATE_KEY, type User } from '../harness.ts'
import { Api } from './api.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'unsupported_method',
  'answer_is_counted',
]

/**
 * Proxy that signs the forwarded requests: signatures cover the path and body, and the tool does
 * not support them. If the tool omits the credentials to check that they are required, the request
 * is not signed.
 */
class SigningProxy {
  readonly #user: User
  readonly #server: Server
  readonly #sequences = new Set<string>()

  constructor(user: User) {
    this.#user = user
    this.#server = createServer(
      (request, response) =>
        void this.#pass(request, response).catch((error: unknown) => {
          response.destroy(error as Error)
        }),
    )
  }

  open(): Promise<string> {
    return new Promise((resolve) =>
      this.#server.listen(0, '127.0.0.1', () => {
        resolve(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`)
      }),
    )
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /**
   * Returns the body with a sequence_id that no earlier request had. With a used sequence_id, the
   * API returns the first response and ignores the rest of the request, so the request would test
   * nothing.
   */
  #withOwnSequence(body: Buffer): Buffer {
    const text = body.toString('utf8')
    const [option, sequence] = /"sequence_id":\s*"((?:[^"\\]|\\.){1,180})"/.exec(text) ?? []
    if (option === undefined || sequence === undefined || !this.#sequences.has(sequence)) {
      if (sequence !== undefined) this.#sequences.add(sequence)
      return body
    }
    const own = `${sequence}-${this.#sequences.size}`
    this.#sequences.add(own)
    return Buffer.from(text.replace(option, () => `"sequence_id": "${own}"`))
  }

  async #pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = this.#withOwnSequence(Buffer.concat(pieces))
    const [method, uri] = [request.method ?? 'GET', request.url ?? '/']
    const { host: _host, 'transfer-encoding': _encoding, ...headers } = request.headers
    const hasCredentials = headers.authorization !== undefined && headers['x-api-key'] !== undefined
    const signed = hasCredentials
      ? await signRequest({
          apiKey: this.#user.apiKey,
          privateKey: PRIVATE_KEY,
          method,
          uri,
          body: body.toString('utf8'),
        })
      : null
    const length = body.length > 0 ? { 'content-length': String(body.length) } : {}
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const own = signed ? requestHeaders(signed, this.#user.apiKey) : {}
      ask(
        `${this.#user.base}${uri}`,
        { method, headers: { ...headers, ...own, ...length }, agent: false },
        resolve,
      )
        .once('error', reject)
        .end(body)
    })
    response.writeHead(answer.statusCode ?? 0, answer.headers)
    answer.pipe(response)
  }
}

interface Answer {
  /** Method of the request, and of its operation; they differ if the tool tries a method that does not exist. */ method: string
  own: string
  path: string
  status: number
  /** Whether the request is valid according to the document. */ positive: boolean
  code: string | null
  field: string | null
  message: string | null
}

/**
 * Error codes of a request that could not be parsed, independently of stored data. A request with
 * any other error code was parsed and could not be served at that time.
 */
const UNREAD = new Set([
  'INVALID_REQUEST',
  'UNKNOWN_FIELD',
  'INVALID_JSON',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
])
const REJECTED_MAX = 4
/**
 * Fields with references that must exist, be accepted by another party, or fit other fields. JSON
 * Schema expresses none of these rules. Their refusals are counted separately.
 */
const DEPENDENT: Readonly<Record<string, string>> = {
  after: 'a position in the list as it is',
  network: 'a network of the installation',
  exchange: 'an exchange of the installation',
  market: 'a market that the exchange has now',
  accounts: 'accounts that are linked',
  'checkout asset': 'an asset of the invoice',
  aml_token: 'a key that the provider accepts',
  api_secret: 'as the exchange shows it',
  url: 'an address that may be posted to',
  'allowed_origins.0': 'an origin in the spelling of browsers',
  confirmations: 'amounts that rise',
  fee_rate: 'decimals of the network',
  'conversions amount': 'beside quote',
  'conversions from_asset': 'beside quote',
  'conversions to_asset': 'another than from_asset',
  'invoices amount': 'together with asset',
  'invoices asset': 'beside amount',
  'invoices fiat': 'beside fiat_amount',
  'invoices fiat_amount': 'together with fiat',
  'orders amount': 'unless quote_amount is sent',
  'orders quote_amount': 'or amount',
  'orders price': 'of a limit order',
  'orders max_slippage_bps': 'of a market order',
  'orders post_only': 'of a limit order',
  'orders time_in_force': 'by the type of the order',
  'auto-forwarding expires_at': 'a time to come',
}
const isDependent = ({ path, field }: Answer): boolean =>
  Object.hasOwn(DEPENDENT, field ?? '') ||
  path.split('/').some((part) => Object.hasOwn(DEPENDENT, `${part} ${field}`))

/** Shortens a message for printing. */
const short = (text: string): string => text.slice(0, 200)
/** Groups responses by a property, and returns one response of each group. */
const kinds = (answers: readonly Answer[], by: (answer: Answer) => string): Map<string, Answer> =>
  new Map(answers.map((each): [string, Answer] => [by(each), each]))

/**
 * Prints the three figures.
 * @returns whether each has the expected value
 */
function report(answers: readonly Answer[]): boolean {
  const counts = [...Map.groupBy(answers, ({ status }) => status)].sort(([a], [b]) => a - b)
  console.log(
    `${answers.length} answers; ${counts.map(([status, { length }]) => `${status}: ${length}`).join(', ')}`,
  )
  const operationOf = ({ own, path }: Answer) => `${own.toUpperCase()} ${path}`
  const failed = kinds(
    answers.filter(({ status }) => status >= 500),
    (each) => `${operationOf(each)} ${each.status}`,
  )
  const undocumented = kinds(
    answers.filter(
      ({ method, own, path, status }) =>
        method === own && document.paths[path]?.[own]?.responses[String(status)] === undefined,
    ),
    (each) => `${operationOf(each)} ${each.status}`,
  )
  const refused = answers.filter(
    ({ positive, method, own, status }) =>
      positive && method === own && status >= 400 && status < 500,
  )
  const unread = refused.filter(({ code }) => UNREAD.has(code ?? ''))
  const byField = (each: Answer) => `${operationOf(each)} ${each.field}`
  const rejected = kinds(
    unread.filter((each) => !isDependent(each)),
    byField,
  )
  const dependent = kinds(unread.filter(isDependent), byField)
  for (const [what, matches] of [
    ['server error', failed],
    ['undocumented status', undocumented],
    ['rejected though valid', rejected],
  ] as const) {
    for (const [name, { message }] of matches)
      console.log(`  ${what}: ${name}: ${short(message ?? '')}`)
  }
  console.log(`Server errors: ${failed.size} (must be 0)`)
  console.log(`Undocumented statuses: ${undocumented.size} (must be 0)`)
  console.log(
    `Rejected schema-valid requests: ${rejected.size} kinds (at most ${REJECTED_MAX}); and ${dependent.size} by what exists or by ` +
      'other fields, which no schema says',
  )
  return failed.size === 0 && undocumented.size === 0 && rejected.size <= REJECTED_MAX
}

const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    examples: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
  },
})
for (const name of ['examples', 'seed'] as const) {
  if (/^[1-9]\d{0,6}$/.test(values[name])) continue
  console.error(`--${name}: must be a whole number from 1, not ${JSON.stringify(values[name])}`)
  process.exit(2)
}
const api = new Api()
const folder = mkdtempSync(join(tmpdir(), 'custody-schemathesis-'))
const file = join(folder, 'answers')
try {
  await api.open()
  const proxy = new SigningProxy(api.user)
  const url = await proxy.open()
  const tool = spawn(
    values.python as string,
    [
      '-m',
      'schemathesis.cli',
      '--config-file',
      join(import.meta.dirname, 'schemathesis.toml'),
      'run',
      join(ROOT, 'docs/openapi.json'),
      '--url',
      url,
      '--checks',
      CHECKS.join(','),
      '--seed',
      values.seed,
      '--max-examples',
      values.examples,
      '--exclude-path-regex',
      '(/events|/stream|/metrics)$',
      '--request-timeout',
      '60',
      '--continue-on-failure',
      '--no-color',
      '--suppress-health-check',
      'all',
      '--generation-database',
      ':memory:',
    ],
    {
      stdio: 'inherit',
      cwd: api.home,
      env: {
        ...process.env,
        PYTHONUTF8: '1',
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONPATH: import.meta.dirname,
        SCHEMATHESIS_HOOKS: 'schemathesis_answers',
        CUSTODY_ANSWERS: file,
      },
    },
  )
  process.exitCode = await new Promise<number>((resolve) =>
    tool.once('close', (code) => resolve(code ?? 1)),
  )
  proxy.close()
  const answers = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer)
  if (!report(answers)) process.exitCode ||= 1
} finally {
  await api.close()
  rmSync(folder, { recursive: true })
}
