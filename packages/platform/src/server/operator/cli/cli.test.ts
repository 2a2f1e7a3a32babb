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
import { OperatorError } from '../command.ts'
import { fieldOf } from '../field.ts'
import packageFile from '../../../../package.json' with { type: 'json' }
import { COMMANDS } from './commands.ts'
import { argumentsOf } from './definition.ts'
import { lineOf } from './program.ts'
import { diagnosisLine } from '../doctor/networks.ts'
import { sendRequest } from '../request.ts'
import { PRIVATE_KEY, PUBLIC_KEY } from '../../../../testing/harness.ts'

/** Tests of the operator's command without a platform. */
const folder = mkdtempSync(join(tmpdir(), 'custody-cli-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const CLI = fileURLToPath(new URL('../../../../bin/custody.mjs', import.meta.url))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const cli = (...words: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...words], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', CUSTODY_HOME: join(folder, 'nowhere') },
  })
  return { status, stdout, stderr }
}

test('--help after a command prints the help of that command, and help lists all commands', () => {
  const drain = cli('gas-tank', 'drain', '--help')
  assert.equal(drain.status, 0)
  assert.match(drain.stdout, /^Usage: npx custody gas-tank drain \[options\]\n/)
  assert.match(drain.stdout, /--workspace <W> +name of the workspace \(required\)/)
  assert.doesNotMatch(drain.stdout, /threshold|unstake/)
  assert.deepEqual(cli('help', 'gas-tank', 'drain'), drain)
  const group = cli('gas-tank', '--help').stdout
  for (const word of ['list', 'address', 'drain', 'stake', 'unstake', 'release', 'set'])
    assert.match(group, new RegExp(`^  ${word} `, 'm'))
  const all = cli('--help').stdout
  assert.equal(cli().stdout, all)
  for (const definition of COMMANDS)
    assert.ok(all.includes(`  ${lineOf(definition)}\n`), definition.usage)
  assert.deepEqual(cli('--version'), {
    status: 0,
    stdout: `custody ${packageFile.version}\n`,
    stderr: '',
  })
})

test('errors about unknown commands, options and arguments list the valid ones', () => {
  const cases: [string[], RegExp][] = [
    [
      ['nonsense'],
      /^custody: unknown command 'nonsense'\nrun "npx custody --help" for a list of all commands\n$/,
    ],
    [['gas-tnk', 'list'], /^custody: unknown command 'gas-tnk'\n\(Did you mean gas-tank\?\)/],
    [
      ['gas-tank'],
      /^custody: gas-tank requires one of these commands:\n {2}gas-tank list --workspace W\n/,
    ],
    [['gas-tank', 'nonsense'], /^custody: unknown command 'nonsense'\n {2}gas-tank list/],
    [
      ['devnet', 'venue'],
      /^custody: devnet venue requires one of these commands:\n {2}devnet venue key --exchange E \[options\]\n/,
    ],
    [
      ['devnet', 'venue', 'key'],
      /^custody: --exchange is required\nUsage: npx custody devnet venue key --exchange E/,
    ],
    [
      ['gas-tank', 'drain', '--workspce', 'x'],
      /^custody: unknown option '--workspce'\n\(Did you mean --workspace\?\)\nUsage: npx custody gas-tank drain/,
    ],
    [
      ['gas-tank', 'drain', '--workspace', 'x'],
      /^custody: --network is required\nUsage: npx custody gas-tank drain --workspace W --network N --to ADDRESS \[options\]\n$/,
    ],
    [
      ['request', 'GET'],
      /^custody: missing required argument 'PATH'\nUsage: npx custody request <METHOD> <PATH> \[BODY\]/,
    ],
    [
      ['request', 'GET', '/x', '{}', '#'],
      /^custody: too many arguments.*\nUsage: npx custody request/,
    ],
    [
      ['listen'],
      /^custody: the platform does not run on .*nowhere: start it with "npm start", or set CUSTODY_HOME\n$/,
    ],
    [['listen', '--forward', 'ftp://x'], /^custody: --forward: must be a URL such as http:/],
    [
      ['audit'],
      /^custody: the platform does not run on .*nowhere: start it with "npm start", or set CUSTODY_HOME\n$/,
    ],
  ]
  for (const [words, expected] of cases) {
    const { status, stdout, stderr } = cli(...words)
    assert.deepEqual([status, stdout], [1, ''], words.join(' '))
    assert.match(stderr, expected)
  }
})

test('the help of each command is a sentence, and describes each argument and option', () => {
  for (const definition of COMMANDS) {
    const { usage, summary, args = {}, options = {} } = definition
    assert.match(summary, /^[A-Z][a-z]+\b.*[.]$/, usage)
    assert.deepEqual(
      Object.keys(args),
      argumentsOf(definition).map((argument) => argument.slice(1, -1)),
      `${usage}: arguments`,
    )
    for (const [name, text] of Object.entries({ ...args, ...options }))
      assert.match(text, /^\S.{4,}[^.]$/, `${usage}: ${name} is a phrase without a period`)
  }
  const fund = cli('devnet', 'fund', '--help').stdout
  assert.match(fund, /^Usage: npx custody devnet fund \[options\] <ASSET> <ADDRESS> <AMOUNT>\n/)
  assert.match(fund, /^Arguments:\n {2}ASSET +asset to send, such as ETH\n/m)
})

test('each command has an implementation with the same name', async () => {
  for (const definition of COMMANDS)
    assert.equal(typeof (await definition.run()), 'function', definition.usage)
})

test('--field prints one value of the response, selected by names and positions', () => {
  const answer = { status: 200, body: { data: [{ id: 'a', amount: 1.5 }], next: null } }
  assert.deepEqual(
    ['data.0.id', 'data.0.amount', 'next', 'data.1.id', 'data.0', '__proto__.x'].map((path) =>
      fieldOf(answer, path),
    ),
    ['a', '1.5', '', '', '{"id":"a","amount":1.5}', ''],
  )
  assert.equal(fieldOf({ api_key: 'k' }, 'api_key'), 'k')
})

test('an invalid --key file is reported with our own error message', async () => {
  const pair = (type: 'ed25519') =>
    generateKeyPairSync(type).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const encrypted = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
  }).privateKey
  mkdirSync(join(folder, 'directory'))
  const cases: [string, RegExp][] = [
    [join(folder, 'absent.pem'), /^--key: the file .*absent\.pem does not exist$/],
    [join(folder, 'directory'), /^--key: .*directory is a folder$/],
    [file('garbage.pem', 'garbage'), /^--key: .*garbage\.pem is not a readable PEM private key/],
    [
      file('public.pem', PUBLIC_KEY),
      /^--key: .*public\.pem is a public key: requests are signed with the private key$/,
    ],
    [file('encrypted.pem', encrypted), /^--key: .*encrypted\.pem is encrypted/],
    [
      file('ed25519.pem', pair('ed25519')),
      /^--key: .*ed25519\.pem is a key of ed25519: an RSA key is required$/,
    ],
  ]
  for (const [key, expected] of cases) {
    await assert.rejects(
      sendRequest(folder, ['GET', '/assets'], { 'api-key': 'k', key, url: 'http://127.0.0.1:1' }),
      (error) => {
        assert.ok(error instanceof OperatorError)
        assert.match(error.message, expected)
        assert.doesNotMatch(error.message, /DECODER|error:|routines|EISDIR|ENOENT/)
        return true
      },
    )
  }
})

test('a request waits for the --until condition, reports a timeout, and can be printed as curl', async () => {
  const key = file('key.pem', PRIVATE_KEY)
  const answers = ['pending', 'pending', 'confirmed', 'confirmed']
  let requestCount = 0
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ data: [{ status: answers[Math.min(requestCount++, answers.length - 1)] }] }),
    )
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const values = { 'api-key': 'k', key, url }
  const done = await sendRequest(folder, ['GET', '/x'], {
    ...values,
    until: 'data.0.status=confirmed',
  })
  assert.deepEqual(
    [requestCount, done.exitCode, fieldOf(done.result, 'data.0.status')],
    [3, 0, 'confirmed'],
  )
  await assert.rejects(
    sendRequest(folder, ['GET', '/x'], { ...values, until: 'data.0.status=failed', timeout: '1' }),
    /data\.0\.status is confirmed, not failed, after 1 s/,
  )
  await assert.rejects(
    sendRequest(folder, ['POST', '/x', '{}'], { ...values, until: 'a=b' }),
    /only a GET/,
  )
  await assert.rejects(sendRequest(folder, ['GET', '/x'], { ...values, until: 'a' }), /FIELD=VALUE/)
  const before = requestCount
  const { text } = await sendRequest(folder, ['GET', '/x'], { ...values, 'print-token': true })
  assert.match(String(text), /^[\w-]+\.[\w-]+\.[\w-]+$/)
  assert.equal(requestCount, before, '--print-token sends nothing')
  await new Promise((resolve) => {
    server.close(resolve)
  })
})

test('the doctor prints one line for each endpoint', () => {
  const seen = {
    network: 'BTC',
    host: 'node.example:8332',
    height: 3,
    milliseconds: 12,
    advice: null,
  }
  assert.equal(
    diagnosisLine({ ...seen, state: 'ok' }),
    'BTC     ok              node.example:8332, block 3, 12 ms',
  )
  assert.equal(
    diagnosisLine({
      ...seen,
      state: 'unreachable',
      height: null,
      milliseconds: null,
      advice: 'check the URL',
    }),
    'BTC     unreachable     check the URL',
  )
})
