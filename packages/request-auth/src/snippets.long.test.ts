// Tests the examples in other languages with the code by which the API and the nodes verify
// requests. It is a long test, because Go is compiled again.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { AuthError, verifyRequest } from './index.ts'

/** The text of http/replay.ts of the platform. */
const WARNING =
  '299 custody "sequence_id was used before with another payload; the first answer is given and nothing new was done"'
const EXAMPLES = join(import.meta.dirname, '../../../examples/signing')
const folder = mkdtempSync(join(tmpdir(), 'custody-snippets-'))
const apiKey = randomUUID()
const keys = generateKeyPairSync('rsa', { modulusLength: 4096 })
const keyFile = join(folder, 'key.pem')
const nonces = new Set<string>()
let server: Server
let url = ''

before(async () => {
  writeFileSync(keyFile, keys.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
      const signed = { token, method: request.method ?? '', uri: request.url ?? '', body }
      verifyRequest({
        request: signed,
        apiKey: String(request.headers['x-api-key']),
        publicKey: keys.publicKey,
        now: Date.now() / 1000,
        age: 'live',
      }).then(
        ({ nonce, method }) => {
          const isNew = !nonces.has(nonce) && method === request.method
          nonces.add(nonce)
          const isTyped = body === '' || request.headers['content-type'] === 'application/json'
          const replay = body.includes('"sequence_id":"used"')
            ? { 'idempotent-replayed': 'true', warning: WARNING }
            : {}
          response
            .writeHead(isNew && isTyped ? 200 : 400, replay)
            .end(JSON.stringify({ method: request.method, uri: request.url, body }))
        },
        (error: unknown) =>
          response
            .writeHead(error instanceof AuthError ? 401 : 500)
            .end(`{"message":${JSON.stringify(String(error))}}`),
      )
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

/**
 * For each example: commands that run it, and a command that checks whether they are available. The
 * first available one is used.
 */
const RUNNERS: Record<string, string[][]> = {
  'custody.sh': [['sh']],
  'custody.py': [['python3'], ['/usr/bin/python3']],
  'custody.rb': [['ruby']],
  'custody.php': [['php']],
  'custody.go': [['go', 'run']],
  'Custody.java': [['java']],
  'Custody.cs': [],
}
const PROBES: Record<string, string[]> = {
  'custody.sh': ['-c', 'command -v curl && command -v openssl'],
  'custody.py': ['-c', 'import jwt, cryptography'],
  'custody.rb': ['-v'],
  'custody.php': ['-r', 'exit(function_exists("openssl_sign") ? 0 : 1);'],
  'custody.go': ['version'],
  'Custody.java': ['--source', '17', '-version'],
}
const runnerOf = (file: string): string[] | undefined =>
  RUNNERS[file]?.find(
    ([program]) =>
      spawnSync(program as string, PROBES[file] ?? [], { timeout: 20_000 }).status === 0,
  )

/** @param key file of the private key */
async function run(
  command: readonly string[],
  key: string,
): Promise<{ status: number | null; output: string }> {
  const [program, ...rest] = command
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    LC_ALL: 'C.UTF-8',
    GOCACHE: join(tmpdir(), 'custody-go-cache'),
    GOFLAGS: '-mod=mod',
    GOTOOLCHAIN: 'local',
    CUSTODY_URL: url,
    CUSTODY_API_KEY: apiKey,
    CUSTODY_KEY: key,
  }
  const child = spawn(program as string, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  return {
    status: await new Promise((resolve) => {
      child.once('close', resolve)
    }),
    output,
  }
}

test('each example has a runner in this file, or is listed as having none', () => {
  assert.deepEqual(
    readdirSync(EXAMPLES)
      .filter((name) => !name.endsWith('.md'))
      .sort(),
    Object.keys(RUNNERS).sort(),
  )
})

for (const file of Object.keys(RUNNERS)) {
  test(`${file}: requests are signed as sent, wrong keys refused, and reused sequence_ids stop it`, async (t) => {
    const runner = runnerOf(file)
    if (!runner) {
      t.skip('its language is not installed')
      return
    }
    const command = [...runner, join(EXAMPLES, file)]
    const read = await run([...command, 'GET', '/dac/v1/wallets?asset=ETH'], keyFile)
    assert.equal(read.status, 0, read.output)
    assert.deepEqual(JSON.parse(read.output), {
      method: 'GET',
      uri: '/dac/v1/wallets?asset=ETH',
      body: '',
    })
    const body = '{"asset":"ETH", "label":"Käse & Brot"}'
    const written = await run([...command, 'POST', '/dac/v1/address', body], keyFile)
    assert.equal(written.status, 0, written.output)
    assert.deepEqual(JSON.parse(written.output), { method: 'POST', uri: '/dac/v1/address', body })
    const foreign = join(folder, 'foreign.pem')
    writeFileSync(
      foreign,
      generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
        type: 'pkcs8',
        format: 'pem',
      }),
    )
    const refused = await run([...command, 'GET', '/dac/v1/wallets?asset=ETH'], foreign)
    assert.ok((refused.status ?? 0) > 0, refused.output)
    assert.match(refused.output, /does not match the public key/)
    const reused = '{"asset":"ETH","sequence_id":"used"}'
    const mismatch = await run([...command, 'POST', '/dac/v1/transaction', reused], keyFile)
    // `go run` exits with 1 for any status of the program, and prints the status.
    assert.equal(mismatch.status, file === 'custody.go' ? 1 : 2, mismatch.output)
    if (file === 'custody.go') assert.match(mismatch.output, /exit status 2/)
    assert.match(
      mismatch.output,
      /sequence_id: was used before with another payload; nothing was created for this request/,
    )
    assert.ok(mismatch.output.includes(JSON.stringify(reused)), 'the earlier answer is printed')
  })
}
