import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findField } from '../field.ts'
import { replayed } from '../../../core/http/replay.ts'
import { PRIVATE_KEY } from '../../../../testing/harness.ts'

/** Runs `custody request` as a script would, against a test server instead of the platform. */
const CLI = fileURLToPath(new URL('../cli.ts', import.meta.url))
const home = mkdtempSync(join(tmpdir(), 'custody-request-'))
const key = join(home, 'key.pem')
interface Answer {
  status?: number
  headers?: Record<string, string>
  body: string
}
let answers: Answer[] = []
let requestCount = 0
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const {
      status = 200,
      headers = {},
      body,
    } = answers[Math.min(requestCount++, answers.length - 1)] as Answer
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  })
})
before(async () => {
  writeFileSync(key, PRIVATE_KEY)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  writeFileSync(join(home, 'url'), `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
after(() => {
  server.closeAllConnections()
  server.close()
  rmSync(home, { recursive: true, force: true })
})

const request = (said: Answer[], ...words: string[]) =>
  new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    answers = said
    requestCount = 0
    const env = { ...process.env, CUSTODY_HOME: home, CUSTODY_API_KEY: 'k', CUSTODY_KEY: key }
    const child = spawn(process.execPath, [CLI, 'request', ...words], { env })
    const out = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      out.stderr += text
    })
    child.once('close', (status) => {
      resolve({ status, ...out })
    })
  })
/** Returns the platform's response to a known `sequence_id`. */
const earlier = (isSame: boolean): Answer => {
  const { text, headers } = replayed('{"id":"earlier","amount":1}', isSame)
  return { body: text ?? '', headers: headers ?? {} }
}
const SEND = ['POST', '/dac/v1/transaction', '{"sequence_id":"s"}']

test('in every output format, another payload with a used sequence_id warns and exits 2', async () => {
  const warned =
    /^warning: sequence_id: was used before with another payload\. .*nothing was created/
  const plain = await request([earlier(false)], ...SEND)
  assert.deepEqual(
    [plain.status, plain.stdout],
    [2, '200 OK\n{\n  "id": "earlier",\n  "amount": 1\n}\n'],
  )
  assert.match(plain.stderr, warned)
  const json = await request([earlier(false)], ...SEND, '--json')
  assert.equal(json.status, 2)
  assert.deepEqual(JSON.parse(json.stdout), {
    status: 200,
    replayed: true,
    mismatch: true,
    body: { id: 'earlier', amount: 1 },
  })
  assert.match(json.stderr, warned)
  const field = await request([earlier(false)], ...SEND, '--field', 'id')
  assert.equal(field.status, 2)
  assert.notEqual(
    field.stdout.trim(),
    'earlier',
    'a script does not take the earlier transfer for its own',
  )
  assert.match(field.stderr, warned)
})

test('sends a request again after Retry-After while the key of a new workspace is generated', async () => {
  const pending = {
    status: 503,
    headers: { 'retry-after': '1' },
    body: '{"code":"KEY_PENDING","message":"nothing was created"}',
  }
  const words = ['POST', '/dac/v1/create-wallet', '{"asset":"BTC"}', '--field', 'id']
  const made = await request([pending, pending, { body: '{"id":"w"}' }], ...words)
  assert.deepEqual([made.status, made.stdout, requestCount], [0, 'w\n', 3])
  assert.match(made.stderr, /^the key of the workspace is being generated; .* again in 1 s\n/)
  // Another error is not repeated.
  const other = { ...pending, body: '{"code":"SIGNERS_UNAVAILABLE","message":"no"}' }
  const failed = await request([other, { body: '{"id":"w"}' }], ...words)
  assert.deepEqual([failed.status, requestCount], [1, 1])
})

test('a repeated request with the same payload exits 0 and notes the replay on stderr', async () => {
  const again = await request([earlier(true)], ...SEND, '--field', 'id')
  assert.deepEqual([again.status, again.stdout], [0, 'earlier\n'])
  assert.match(again.stderr, /^note: sequence_id: the same request was sent before/)
  const first = await request(
    [{ body: '{"id":"new"}', headers: { warning: '214 proxy "Transformation applied"' } }],
    ...SEND,
    '--field',
    'id',
  )
  assert.deepEqual(first, { status: 0, stdout: 'new\n', stderr: '' })
})

test('--field with a missing field exits 1, lists the available fields and prints the response', async () => {
  const missing = await request([{ body: '{"id":"t","data":[]}' }], ...SEND, '--field', 'data.0.id')
  assert.deepEqual([missing.status, missing.stdout], [1, ''])
  assert.match(
    missing.stderr,
    /^custody: --field: the response has no field "data\.0\.id": "data" is an empty list\n200 OK\n/,
  )
  assert.match(missing.stderr, /"id": ?"t"/, 'the write was done: its answer is not lost')
  const empty = await request([{ body: '{"next":null,"text":""}' }], 'GET', '/x', '--field', 'next')
  assert.deepEqual(empty, { status: 0, stdout: '\n', stderr: '' })
})

test('an error about an absent field names the deepest existing part of its path', () => {
  const body = { data: [{ id: 'a' }], next: null, none: {} }
  const reasonOf = (path: string) => {
    const field = findField(body, path)
    return field.isFound ? null : field.reason
  }
  assert.equal(
    reasonOf('idd'),
    'the response has no field "idd": the response is an object with data, next, none',
  )
  assert.equal(
    reasonOf('data.1.id'),
    'the response has no field "data.1.id": "data" is a list of 1, from 0 to 0',
  )
  assert.equal(
    reasonOf('data.0.id.x'),
    'the response has no field "data.0.id.x": "data.0.id" is a string without fields',
  )
  assert.equal(reasonOf('next.x'), 'the response has no field "next.x": "next" is null')
  assert.equal(reasonOf('none.x'), 'the response has no field "none.x": "none" is an empty object')
  assert.equal(
    reasonOf('__proto__.x'),
    'the response has no field "__proto__.x": the response is an object with data, next, none',
  )
  assert.equal(
    reasonOf(''),
    'the response has no field "": the response is an object with data, next, none',
  )
})

test('--until reports an absent field, another value or a refusal, and does not retry a refusal', async () => {
  const absent = await request(
    [{ body: '{"data":[]}' }],
    'GET',
    '/x',
    '--until',
    'data.0.status=confirmed',
    '--timeout',
    '1',
  )
  assert.equal(absent.status, 1)
  assert.match(
    absent.stderr,
    /^custody: --until: the response has no field "data\.0\.status": "data" is an empty list, after 1 s\n200 OK\n/,
  )
  const other = await request(
    [{ body: '{"status":"pending"}' }],
    'GET',
    '/x',
    '--until',
    'status=confirmed',
    '--timeout',
    '1',
  )
  assert.match(other.stderr, /^custody: --until: status is pending, not confirmed, after 1 s\n/)
  const refused = await request(
    [{ status: 404, body: '{"code":"NOT_FOUND"}' }],
    'GET',
    '/x',
    '--until',
    'status=confirmed',
  )
  assert.deepEqual([refused.status, requestCount], [1, 1])
  assert.match(
    refused.stderr,
    /^custody: --until: the response has status 404, so status=confirmed is not waited for\n404 Not Found\n[^]*NOT_FOUND/,
  )
  const passing = await request(
    [{ status: 503, body: '{}' }, { body: '{"status":"confirmed"}' }],
    'GET',
    '/x',
    '--until',
    'status=confirmed',
    '--field',
    'status',
  )
  assert.deepEqual([passing.status, passing.stdout, requestCount], [0, 'confirmed\n', 2])
})
