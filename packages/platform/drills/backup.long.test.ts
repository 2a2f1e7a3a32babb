import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of the recovery after a disaster with the operator's commands: backup, rm -rf, restore,
 * reconcile, audit.
 */
const platform = new TestPlatform({ mode: 'prepared' })
const aside = mkdtempSync(join(tmpdir(), 'custody-aside-'))
const place = (name: string): string => join(aside, name)
const wal = place('wal')
/** Name of the newest migration. */
const NEWEST = readdirSync(join(import.meta.dirname, '../src/core/database/migrations'))
  .sort()
  .at(-1)
process.env['CUSTODY_WAL_ARCHIVE'] = wal
const ASSETS: Record<string, { fund: string; amount: string; to: string }> = {
  BTC: { fund: '2', amount: '0.01', to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080' },
  ETH: { fund: '5', amount: '0.02', to: '0x00000000000000000000000000000000000000AA' },
  USDT_ETH: { fund: '500', amount: '3', to: '0x00000000000000000000000000000000000000AA' },
  XRP: { fund: '500', amount: '2', to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh' },
}
let user: User

before(async () => {
  await platform.start()
  user = await platform.user('acme')
  // The recovery files are kept offline by other people, so they are copied out of the home.
  for (const node of [1, 2, 3])
    cpSync(join(platform.home, 'signers', `recovery-${node}`), place(`recovery-${node}`))
})
after(async () => {
  await platform.remove()
  rmSync(aside, { recursive: true, force: true })
})

const sent = new Map<string, string>()
async function send(asset: string, sequence: string): Promise<Transfer> {
  const { amount, to } = ASSETS[asset] as { amount: string; to: string }
  const body = transferBody(asset, amount, to, { sequence_id: sequence })
  sent.set(sequence, body)
  const answer = await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
  assert.equal(answer.status, 200, `${asset}: ${answer.text}`)
  return answer.body
}
async function sendAll(sequence: string): Promise<void> {
  const transfers = await Promise.all(
    Object.keys(ASSETS).map((asset) => send(asset, `${sequence}-${asset}`)),
  )
  for (const { id } of transfers) await assertConfirmed(user, id)
}
const list = async (): Promise<string[]> =>
  (await call<{ data: Transfer[] }>(user, 'GET', '/dac/v1/transactions?limit=500')).body.data
    .filter(({ type }) => type === 'Withdraw')
    .map(
      ({ id, hash, asset, amount, fee, status, sequence_id: sequence }) =>
        `${id} ${String(asset)} ${amount} ${fee} ${status} ${String(sequence)} ${hash}`,
    )
    .sort()
const balances = () =>
  Promise.all(Object.keys(ASSETS).map(async (asset) => (await balance(user, asset)).balance))

/**
 * Deletes the platform's home except for `kept`: the chains run elsewhere, and nodes that survive
 * the platform run on their own hosts.
 */
function destroy(stored: readonly string[]): void {
  for (const name of stored) {
    mkdirSync(join(place('kept'), name, '..'), { recursive: true })
    renameSync(join(platform.home, name), join(place('kept'), name))
  }
  rmSync(platform.home, { recursive: true })
}
function bringBack(stored: readonly string[]): void {
  for (const name of stored) renameSync(join(place('kept'), name), join(platform.home, name))
  rmSync(place('kept'), { recursive: true })
}
async function restart(): Promise<void> {
  await platform.start()
  user = { ...user, base: platform.base }
}
async function reconciled(): Promise<void> {
  const done = await platform.cli('reconcile', '--json')
  assert.equal(done.status, 0, `${done.stderr}\n${done.stdout}\n${platform.output.slice(-3000)}`)
  const audit = await platform.cli('audit')
  assert.equal(audit.status, 0, audit.stdout)
}
/** Sends the same requests again and checks that no payment is made. */
async function nothingTwice(before: { list: string[]; balances: string[] }): Promise<void> {
  assert.deepEqual(await list(), before.list)
  for (const [sequence, body] of sent) {
    const again = await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
    assert.deepEqual(
      [again.status, again.headers.get('idempotent-replayed')],
      [200, 'true'],
      sequence,
    )
  }
  assert.deepEqual([await list(), await balances()], [before.list, before.balances])
}
const NODES = ['signers/node-1', 'signers/node-2', 'signers/node-3']

test('after loss of the platform, restores the backup, and the rest from nodes and chains', async (t) => {
  for (const [asset, { fund }] of Object.entries(ASSETS))
    await fundedWallet(platform, user, asset, fund)
  await sendAll('before')
  assert.equal((await platform.cli('backup-key', '--out', place('key'))).status, 0)
  const under = [await send('BTC', 'open-BTC'), await send('ETH', 'open-ETH')]
  const began = Date.now()
  const made = await platform.cli(
    'backup',
    '--out',
    place('first'),
    '--recovery-key',
    place('key.pub'),
    '--json',
  )
  t.diagnostic(`backup: ${Date.now() - began} ms`)
  assert.equal(made.status, 0, made.stderr)
  const report = JSON.parse(made.stdout) as {
    nodes: { node: number }[]
    database: { migrations: string[] }
    bytes: number
  }
  assert.deepEqual(
    [report.nodes.map(({ node }) => node), report.database.migrations.at(-1)],
    [[1, 2, 3], NEWEST],
  )
  for (const line of [
    /^database: PostgreSQL/m,
    /^secrets: /m,
    /^node 3: \d+ keys/m,
    /^manifest.json: /m,
  ])
    assert.match(made.stderr, line)
  assert.deepEqual(
    [
      statSync(place('first')).mode & 0o777,
      statSync(join(place('first'), 'manifest.json')).mode & 0o777,
    ],
    [0o700, 0o600],
  )
  const key = readFileSync(join(platform.home, 'secrets.key'))
  const tls = readFileSync(join(platform.home, 'signers', 'platform', 'tls.key'))
  for (const name of readdirSync(place('first'), { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue
    const bytes = readFileSync(join(name.parentPath, name.name))
    assert.ok(
      !bytes.includes(key) && !bytes.includes(key.toString('base64')) && !bytes.includes(tls),
      `${name.name} holds a secret in plain`,
    )
  }
  const again = await platform.cli(
    'backup',
    '--out',
    place('first'),
    '--recovery-key',
    place('key.pub'),
  )
  assert.deepEqual([again.status, /already exists/.test(again.stderr)], [1, true])
  for (const { id } of under) await assertConfirmed(user, id)
  await sendAll('after')
  await platform.atRest()
  const before = { list: await list(), balances: await balances() }
  assert.equal(await platform.stop(), 0)
  destroy([...NODES, 'devnet'])
  const [restoring] = [Date.now()]
  const restored = await platform.cli(
    'restore',
    '--in',
    place('first'),
    '--recovery-secret',
    place('key'),
    '--json',
  )
  t.diagnostic(`restore: ${Date.now() - restoring} ms`)
  assert.equal(restored.status, 0, restored.stderr)
  assert.deepEqual(readFileSync(join(platform.home, 'secrets.key')), key)
  bringBack([...NODES, 'devnet'])
  await restart()
  assert.equal((await fetch(`${platform.base}/readyz`)).status, 503, 'the nodes know more')
  const reconciling = Date.now()
  await reconciled()
  t.diagnostic(`reconcile and audit: ${Date.now() - reconciling} ms`)
  await nothingTwice(before)
  await sendAll('again')
  assert.equal((await platform.cli('audit')).status, 0)
})

test('after loss of all hosts, restores everything from the backup and the archived log', async (t) => {
  const made = await platform.cli(
    'backup',
    '--out',
    place('second'),
    '--recovery-key',
    place('key.pub'),
    '--json',
  )
  assert.equal(made.status, 0, made.stderr)
  await sendAll('late')
  const until = new Date().toISOString()
  const { id: open } = await send('ETH', 'late-open')
  await assertConfirmed(user, open)
  await platform.atRest()
  const before = { list: await list(), balances: await balances() }
  const last = (
    await platform.database.one<{ file: string }>('select pg_walfile_name(pg_switch_wal()) as file')
  )?.file as string
  await waitFor('the archive', async () => existsSync(join(wal, last)))
  assert.equal(await platform.stop(), 0)
  const {
    signers: [port],
  } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { signers: [number] }
  destroy(['devnet'])
  const secrets = [1, 2, 3].map((node) => `${node}=${place(`recovery-${node}`)}`).join(',')
  const words = [
    'restore',
    '--in',
    place('second'),
    '--recovery-secret',
    place('key'),
    '--node-secrets',
    secrets,
    '--wal',
    wal,
  ]
  const began = Date.now()
  // The second node's secret replaces the third node's: two nodes are restored before the restore
  // fails.
  const mixed = words.map((word) =>
    word === secrets ? secrets.replace(place('recovery-3'), place('recovery-2')) : word,
  )
  const cut = await platform.cli(...mixed)
  assert.deepEqual([cut.status, readdirSync(platform.home)], [1, []])
  assert.match(
    cut.stderr,
    /node 3: .*the partial restore was removed from .*run the same command again/s,
  )
  // A node that cannot start writes the reason to its log, which is deleted with the home. The
  // error therefore contains the end of the log.
  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  const taken = await platform.cli(...words)
  other.close()
  assert.deepEqual([taken.status, readdirSync(platform.home)], [1, []])
  assert.match(
    taken.stderr,
    /signer-1 did not start \(exit 1\); its log ends with: .*EADDRINUSE.*; the partial restore was removed from/s,
  )
  const earlier = await platform.cli(...words, '--until', until)
  assert.equal(earlier.status, 0, earlier.stderr)
  rmSync(platform.home, { recursive: true })
  const restored = await platform.cli(...words, '--json')
  const { next } = JSON.parse(restored.stdout.trim().split('\n').at(-1) as string) as {
    next: string[]
  }
  assert.ok(
    next[0]?.includes(
      `the backup does not contain them, so copy the folder devnet of the lost home to ${join(platform.home, 'devnet')}`,
    ),
    next[0],
  )
  t.diagnostic(`twice restored with its log and three nodes: ${Date.now() - began} ms`)
  assert.equal(restored.status, 0, restored.stderr)
  bringBack(['devnet'])
  await restart()
  await reconciled()
  await nothingTwice(before)
  await sendAll('anew')
  assert.equal((await platform.cli('audit')).status, 0)
})

test('refuses an incomplete backup or one of another version, and overwrites nothing', async () => {
  const bad = place('bad')
  const file = 'database/PG_VERSION'
  const fresh = (): void => {
    rmSync(bad, { recursive: true, force: true })
    cpSync(place('first'), bad, { recursive: true })
  }
  const refused = async (expected: RegExp, ...more: string[]): Promise<void> => {
    const { status, stderr } = await platform.cli('restore', '--in', bad, ...more)
    assert.equal(status, 1, String(expected))
    assert.match(stderr, expected)
  }
  const unproved = await platform.cli('restore', '--in', place('first'), '--verify')
  assert.deepEqual(
    [
      unproved.status,
      /undamaged, but its authenticity is not proved: \d+ files/.test(unproved.stdout),
    ],
    [2, true],
    unproved.stderr,
  )
  const authentic = await platform.cli(
    'restore',
    '--in',
    place('first'),
    '--verify',
    '--recovery-key',
    place('key.pub'),
  )
  assert.deepEqual(
    [authentic.status, /authentic, signed by the recovery key/.test(authentic.stdout)],
    [0, true],
    authentic.stderr,
  )
  fresh()
  rmSync(join(bad, file))
  await refused(/PG_VERSION is missing/, '--verify')
  await refused(/PG_VERSION is missing/, '--without-secrets', '--recovery-key', place('key.pub'))
  fresh()
  const text = readFileSync(join(bad, 'nodes/node-1.json'), 'utf8')
  writeFileSync(join(bad, 'nodes/node-1.json'), text.replace('"version":2', '"version":1'))
  await refused(/nodes\/node-1\.json was changed/, '--verify')
  appendFileSync(join(bad, file), ' ')
  await refused(/PG_VERSION has \d+ bytes, not \d+; .*was changed|was changed; .*/, '--verify')
  fresh()
  writeFileSync(join(bad, 'more'), '')
  await refused(/more does not belong to the backup/, '--verify')
  fresh()
  const manifest = JSON.parse(readFileSync(join(bad, 'manifest.json'), 'utf8')) as {
    database: { migrations: string[] }
    version: number
  }
  manifest.database.migrations.push('999_later.sql')
  writeFileSync(join(bad, 'manifest.json'), JSON.stringify(manifest))
  await refused(/made by another version .*999_later\.sql/, '--verify')
  writeFileSync(join(bad, 'manifest.json'), JSON.stringify({ ...manifest, version: 3 }))
  await refused(/a later version of this platform wrote/, '--verify')
  rmSync(join(bad, 'manifest.json'))
  await refused(/is not a backup: it has no manifest/, '--verify')
  fresh()
  await refused(
    /is not empty: a backup can be restored only into an empty folder/,
    '--recovery-secret',
    place('key'),
  )
  await refused(/--recovery-secret is required, or --without-secrets/)
  const home = place('empty')
  const other = new TestPlatform({ home, mode: 'prepared' })
  const wrong = await other.cli(
    'restore',
    '--in',
    place('first'),
    '--recovery-secret',
    place('recovery-1'),
  )
  assert.match(wrong.stderr, /is not authentic: manifest\.sig was made with another key/)
  assert.equal(existsSync(home), false)
  const late = await other.cli(
    'restore',
    '--in',
    place('first'),
    '--without-secrets',
    '--recovery-key',
    place('key.pub'),
    '--wal',
    wal,
    '--until',
    '2001-01-01T00:00:00Z',
  )
  assert.match(late.stderr, /PostgreSQL did not start/)
  assert.deepEqual(readdirSync(home), [])
  await other.remove()
})
