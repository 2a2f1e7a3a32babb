import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'

/**
 * Tests of untrusted text in the operator's terminal: the real command, with a test server instead
 * of the platform and of a node.
 */
type Json = Record<string, unknown>
const CLI = fileURLToPath(new URL('../server/operator/cli.ts', import.meta.url))
const home = mkdtempSync(join(tmpdir(), 'custody-terminal-'))
const keyFile = join(home, 'mine.pub')
const pem = generateKeyPairSync('rsa', {
  modulusLength: 4096,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).publicKey
let answer: (path: string, body: Json) => { status?: number; body: Json } = () => ({ body: {} })

/**
 * Moves the cursor one line up, erases that line, and writes the line that the operator expects.
 * The last part reverses the following text.
 */
const FORGED = 'signer 1: full key for treasury / main (index 1), RSA key SHA-256 00'
const ATTACK = `12\u001b[1A\u001b[2K\r${FORGED}\n${FORGED}\u2028\u009b2K\u007f\u202e321\u2066`
const SHOWN = `12\\u001b[1A\\u001b[2K\\u000d${FORGED}\\u000a${FORGED}\\u2028\\u009b2K\\u007f\\u202e321\\u2066`

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  request.on('end', () => {
    const { status = 200, body } = answer(request.url ?? '', JSON.parse(text) as Json)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
})
before(async () => {
  writeFileSync(keyFile, pem)
  const socket = join(home, 'platform.sock')
  await new Promise<void>((resolve) => {
    server.listen(socket, resolve)
  })
  writeFileSync(join(home, 'operator.path'), socket)
  writeFileSync(
    join(home, 'config.json'),
    JSON.stringify({ node: 1, host: '127.0.0.1', port: 1, socket }),
  )
})
after(() => {
  server.closeAllConnections()
  server.close()
  rmSync(home, { recursive: true, force: true })
})

const cli = (...args: string[]) =>
  new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, [CLI, ...args], {
      env: { ...process.env, CUSTODY_HOME: home },
    })
    const said = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.stderr += text
    })
    child.once('close', (status) => {
      resolve({ status, ...said })
    })
  })
const isSafe = (text: string): boolean =>
  !/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(text.replaceAll('\n', ''))

test('attack: the memo of a deposit cannot erase or add lines of a list in a terminal', async () => {
  const row = {
    id: 'd1',
    created_at: 't',
    amount: '1',
    asset: 'XRP',
    address: 'r1',
    address_tag: ATTACK,
    sender: 'r2',
    workspace: 'w',
    hash: 'h',
  }
  answer = () => ({ body: { suspense: [row] } })
  const { stdout } = await cli('suspense', 'list')
  assert.equal(stdout, `d1  t  1 XRP  to r1 tag ${SHOWN}  from r2  w  h\n`)
  const json = (await cli('suspense', 'list', '--json')).stdout
  assert.ok(isSafe(json) && json.trimEnd().split('\n').length === 1, json)
  assert.deepEqual(JSON.parse(json), { suspense: [row] })
  assert.equal(
    (await cli('suspense', 'list', '--field', 'suspense.0.address_tag')).stdout,
    `${ATTACK}\n`,
  )
})

test('attack: a signer node cannot rewrite the confirmation line of an enrolment', async () => {
  const typed = {
    role: 'read-only',
    workspace: 'shop',
    sub_account: 'main',
    key_fingerprint: fingerprintOfKey(parsePublicKey(pem)),
  }
  answer = (_, { api_key }) => ({
    body: { ...typed, api_key, sub_account_index: ATTACK, mode: 'local', identities: [] },
  })
  const { stdout, stderr } = await cli(
    'signer',
    'enrol',
    '--home',
    home,
    '--workspace',
    'shop',
    '--sub-account',
    'main',
    '--role',
    'read-only',
    '--public-key',
    keyFile,
  )
  assert.equal(
    stdout.split('\n')[0],
    `signer 1: read-only key for shop / main (index ${SHOWN}), RSA key SHA-256 ${typed.key_fingerprint}`,
    stderr,
  )
  assert.ok(isSafe(stdout) && !stdout.split('\n').includes(FORGED))
})

test('attack: a message of the platform or of a node stays one line on standard error', async () => {
  answer = () => ({ status: 400, body: { error: ATTACK, message: ATTACK } })
  assert.deepEqual(await cli('gas-tank', 'list', '--workspace', 'w'), {
    status: 1,
    stdout: '',
    stderr: `custody: ${SHOWN}\n`,
  })
  const enrol = await cli(
    'signer',
    'enrol',
    '--home',
    home,
    '--workspace',
    'shop',
    '--sub-account',
    'main',
    '--role',
    'full',
    '--public-key',
    keyFile,
  )
  assert.deepEqual([enrol.status, enrol.stdout], [1, ''])
  assert.ok(
    enrol.stderr.endsWith(`signer 1: ${SHOWN}\n`) && enrol.stderr.split('\n').length === 2,
    enrol.stderr,
  )
})
