import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../src/operator/command.ts'
import { fieldOf } from '../src/operator/field.ts'
import { HELP, helpOf, unknownCommand } from '../src/operator/help.ts'
import { sendRequest } from '../src/operator/request.ts'
import { PRIVATE_KEY, PUBLIC_KEY } from './harness.ts'

/** The operator's command without a platform. */
const folder = mkdtempSync(join(tmpdir(), 'custody-cli-'))
after(() => { rmSync(folder, { recursive: true, force: true }) })
const CLI = fileURLToPath(new URL('../src/operator/cli.ts', import.meta.url))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

test('--help after a command prints that command alone', () => {
  const drain = helpOf(['gas-tank', 'drain']) ?? ''
  assert.deepEqual(drain.match(/^ {2}\S+ \S+/gm), ['  gas-tank drain'])
  assert.match(helpOf(['gas-tank', 'unstake']) ?? '', /^Usage: npx custody\n {2}gas-tank stake\|unstake\|release/)
  assert.match(helpOf(['request', 'GET', '/dac/v1/wallets']) ?? '', /^Usage: npx custody\n {2}request METHOD/)
  assert.equal(helpOf(['aml'])?.match(/^ {2}aml /gm)?.length, HELP.match(/^ {2}aml /gm)?.length)
  assert.equal(helpOf(['nonsense']), null)
  assert.equal(helpOf(['gas-tank', 'nonsense']), null)
  assert.match(unknownCommand(['gas-tank', 'nonsense']), /^unknown command: gas-tank nonsense\nUsage: npx custody\n {2}gas-tank list/)
  for (const [line] of HELP.matchAll(/^ {2}[a-z][a-z-]*( [a-z][a-z-]*)?(?= |$)/gm)) assert.ok(helpOf(line.trim().split(' ')), line)
  const { status, stdout } = spawnSync(process.execPath, [CLI, 'audit', '--help'], { encoding: 'utf8' })
  assert.deepEqual([status, stdout], [0, `${helpOf(['audit'])}\n`])
})

test('--field is one value of the answer, by names and positions', () => {
  const answer = { status: 200, body: { data: [{ id: 'a', amount: 1.5 }], next: null } }
  assert.deepEqual(['data.0.id', 'data.0.amount', 'next', 'data.1.id', 'data.0', '__proto__.x'].map((path) => fieldOf(answer, path)), ['a', '1.5', '', '', '{"id":"a","amount":1.5}', ''])
  assert.equal(fieldOf({ api_key: 'k' }, 'api_key'), 'k')
})

test('a --key that is none is named, in words of our own', async () => {
  const pair = (type: 'ed25519') => generateKeyPairSync(type).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const encrypted = generateKeyPairSync('rsa', { modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } }).privateKey
  mkdirSync(join(folder, 'directory'))
  const cases: [string, RegExp][] = [
    [join(folder, 'absent.pem'), /^--key: there is no file .*absent\.pem$/],
    [join(folder, 'directory'), /^--key: .*directory is a folder$/],
    [file('garbage.pem', 'garbage'), /^--key: .*garbage\.pem is not a readable PEM private key/],
    [file('public.pem', PUBLIC_KEY), /^--key: .*public\.pem is a public key: requests are signed with the private half$/],
    [file('encrypted.pem', encrypted), /^--key: .*encrypted\.pem is encrypted/],
    [file('ed25519.pem', pair('ed25519')), /^--key: .*ed25519\.pem is a key of ed25519: an RSA key is needed$/],
  ]
  for (const [key, expected] of cases) {
    await assert.rejects(sendRequest(folder, ['GET', '/assets'], { 'api-key': 'k', key, url: 'http://127.0.0.1:1' }), (error) => {
      assert.ok(error instanceof OperatorError)
      assert.match(error.message, expected)
      assert.doesNotMatch(error.message, /DECODER|error:|routines|EISDIR|ENOENT/)
      return true
    })
  }
})

test('a request waits for what it is told to, says where it stopped, and can be made by curl', async () => {
  const key = file('key.pem', PRIVATE_KEY)
  const answers = ['pending', 'pending', 'confirmed', 'confirmed']
  let asked = 0
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ data: [{ status: answers[Math.min(asked++, answers.length - 1)] }] }))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const values = { 'api-key': 'k', key, url }
  const done = await sendRequest(folder, ['GET', '/x'], { ...values, until: 'data.0.status=confirmed' })
  assert.deepEqual([asked, done.exitCode, fieldOf(done.result, 'data.0.status')], [3, 0, 'confirmed'])
  await assert.rejects(sendRequest(folder, ['GET', '/x'], { ...values, until: 'data.0.status=failed', timeout: '1' }), /data\.0\.status is confirmed, not failed, after 1 s/)
  await assert.rejects(sendRequest(folder, ['POST', '/x', '{}'], { ...values, until: 'a=b' }), /only a GET/)
  await assert.rejects(sendRequest(folder, ['GET', '/x'], { ...values, until: 'a' }), /FIELD=VALUE/)
  await assert.rejects(sendRequest(folder, ['GET', '/x', '{}', '#', 'a', 'comment'], values), /what is "#"\? A body is one word: quote it/)
  const before = asked
  const { text } = await sendRequest(folder, ['GET', '/x'], { ...values, 'print-token': true })
  assert.match(text, /^[\w-]+\.[\w-]+\.[\w-]+$/)
  assert.equal(asked, before, '--print-token sends nothing')
  await new Promise((resolve) => { server.close(resolve) })
})
