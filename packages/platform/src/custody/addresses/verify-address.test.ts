// Tests of the operator's command in a separate process, without a platform, as the owner of an
// address runs it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { addressAt, loadRegistry } from '@custody/chains'
import { Nodes } from '../../../../client/testing/certified.ts'

const CLI = fileURLToPath(new URL('../../server/operator/cli.ts', import.meta.url))
const home = mkdtempSync(join(tmpdir(), 'custody-verify-'))
after(() => {
  rmSync(home, { recursive: true, force: true })
})

const nodes = new Nodes((bytes) => new Uint8Array(randomBytes(bytes)))
const keys = nodes.keys()
const bitcoin = loadRegistry('local').network('BTC')!
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))
const [key] = keys.keys as [(typeof keys.keys)[0]]
const at = (index: number, sub = 1) =>
  addressAt(bitcoin, { publicKey: bytes(key.public_key), chainCode: bytes(key.chain_code) }, [
    sub,
    0,
    index,
  ])

function file(name: string, value: unknown): string {
  writeFileSync(join(home, name), JSON.stringify(value))
  return join(home, name)
}
const FILES = ['--keys', file('keys.json', keys), '--trust', file('trust.json', nodes.trust())]

function verify(...words: string[]): {
  status: number | null
  stdout: string
  stderr: string
  last: Record<string, unknown>
} {
  const run = spawnSync(process.execPath, [CLI, 'verify-address', ...words], {
    encoding: 'utf8',
    env: { ...process.env, CUSTODY_HOME: join(home, 'none') },
  })
  const line = run.stdout.trim().split('\n').at(-1) ?? ''
  return { ...run, last: line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : {} }
}

test('confirms an own address, with its path and the nodes that certified its key', () => {
  const result = verify('BTC', at(5), ...FILES)
  assert.equal(result.status, 0, result.stderr)
  assert.equal(
    result.stdout.trim(),
    `${at(5)} is the BTC address 1/0/5 of acme / main; its key is certified by signer nodes 1, 2, 3`,
  )
  // The file has the form in which `custody request GET /dac/v1/keys --json` saves it.
  const json = verify(
    'BTC',
    at(5),
    '--keys',
    file('saved.json', { status: 200, body: keys }),
    ...FILES.slice(2),
    '--path',
    '1/0/5',
    '--json',
  )
  assert.deepEqual(
    [json.status, json.last['valid'], json.last['path'], json.last['certified_by']],
    [0, true, [1, 0, 5], [1, 2, 3]],
  )
})

test("exits 1 for a foreign address, another sub-account's, or one beyond the search range", () => {
  const foreign: [string, ...string[]][] = [
    ['bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
    [at(5, 2)],
    [at(5), '--max-index', '4'],
    [at(5, 2), '--path', '2/0/5'],
    [at(5), '--path', '1/0/6'],
  ]
  for (const [address, ...more] of foreign) {
    const refused = verify('BTC', address, ...FILES, ...more)
    assert.deepEqual(
      [refused.status, refused.stdout.trim().split('\n').length, refused.stderr],
      [1, 1, ''],
      `${address} ${more.join(' ')}`,
    )
    const json = verify('BTC', address, ...FILES, ...more, '--json')
    assert.deepEqual([json.status, json.last['valid']], [1, false])
  }
})

test('refuses keys that other nodes certified', () => {
  const strangers = new Nodes((length) => new Uint8Array(randomBytes(length)))
  const refused = verify(
    'BTC',
    at(5),
    '--keys',
    FILES[1] as string,
    '--trust',
    file('strangers.json', strangers.trust()),
    '--json',
  )
  assert.deepEqual([refused.status, refused.last['code']], [1, 'KEY'])
})

test('reports invalid options', () => {
  const wrong = [
    ['BTC'],
    ['BTC', at(1), '--keys', 'none', ...FILES.slice(2)],
    ['BTC', at(1), ...FILES, '--path', '1/0'],
    ['BTC', at(1), ...FILES, '--max-index', 'x'],
  ]
  for (const words of wrong) {
    const refused = verify(...words)
    assert.equal(refused.status, 1)
    assert.match(refused.stderr, /^custody: (?:missing required argument|--)/)
  }
})
