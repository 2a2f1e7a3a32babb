import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  assertConfirmed,
  call,
  rpc,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { readFixture, unpack } from '../testing/upgrade/unpack.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Starts the current version on the data directory that an earlier version left when it was killed.
 */
const FOLDER = join(import.meta.dirname, '../testing/upgrade/f99331a')
const left = readFixture(FOLDER)
// The clock is set to two seconds after the earlier version was killed, because nodes refuse
// requests that are too old.
const behindMs = Date.now() - left.madeAt - 2000

const home = mkdtempSync(join(tmpdir(), 'custody-test-'))
const platform = new TestPlatform({ home, clock: () => Date.now() - behindMs })
// A second after the earlier version was killed.
platform.eventsFrom = new Date(left.madeAt + 1000)
const received: { id: string; type: string; object: string }[] = []
const receiver = createServer((request, response) => {
  let body = ''
  request
    .setEncoding('utf8')
    .on('data', (chunk: string) => {
      body += chunk
    })
    .on('end', () => {
      const { type, object } = JSON.parse(body) as { type: string; object: string }
      received.push({ id: String(request.headers['webhook-id']), type, object })
      response.writeHead(200).end()
    })
})
const ids = Object.values(left.ids).flatMap((states) => Object.values(states))
const ETHER = 10n ** 18n
let user: User
before(async () => {
  await new Promise<void>((resolve) => {
    receiver.listen(0, '127.0.0.1', resolve)
  })
  await unpack(FOLDER, home, `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`)
})
after(async () => {
  receiver.closeAllConnections()
  receiver.close()
  await platform.remove()
})

const etherOf = async (address: string) =>
  BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [address, 'latest']))
const bitcoinOf = async (address: string) =>
  (
    await rpc<{ total_amount: number }>(platform, 'BTC', 'scantxoutset', [
      'start',
      [`addr(${address})`],
    ])
  ).total_amount
const newTransfer = async (asset: string, amount: string, sequence: string): Promise<void> => {
  const body = transferBody(asset, amount, left.payees[asset] as string, { sequence_id: sequence })
  const {
    status,
    body: made,
    text,
  } = await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
  assert.equal(status, 200, text)
  await assertConfirmed(user, made.id)
}
const audited = async (): Promise<void> => {
  const audit = await platform.cli('audit', '--json')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
}

test('an upgrade confirms every unfinished transfer once, and the ledger still balances', async () => {
  await platform.start()
  const migrations = (
    await platform.database.query<{ name: string }>('select name from migrations order by name')
  ).map(({ name }) => name.slice(0, 3))
  assert.deepEqual(
    [migrations.includes('026'), new Set(migrations).size],
    [true, migrations.length],
  )
  for (const node of [1, 2, 3])
    assert.ok(
      !existsSync(join(home, 'signers', `node-${node}`, 'keys.json')),
      `starting node ${node} changed its key files`,
    )
  user = await platform.user('acme')
  for (const id of ids) await assertConfirmed(user, id)
  // The balance consists of one earlier payment, and one payment for each state.
  assert.equal(await etherOf(left.payees['ETH'] as string), 7n * ETHER)
  assert.equal(await bitcoinOf(left.payees['BTC'] as string), 0.7)
  await waitFor(
    'the forward',
    async () => (await etherOf('0x00000000000000000000000000000000000000f9')) === 3n * ETHER,
  )
  await waitFor('webhooks', async () =>
    ids.every((id) =>
      received.some(({ object, type }) => object === id && type === 'transaction.confirmed'),
    ),
  )
  await platform.atRest()
  await audited()
})

test('returns the original transfer when a caller repeats a request of the earlier version', async () => {
  const old = { ...(left.users[0] as User), base: platform.base }
  for (const [asset, amount] of [
    ['BTC', '0.1'],
    ['ETH', '1'],
  ] as const) {
    for (const [state, id] of Object.entries(left.ids[asset] as Record<string, string>)) {
      const body = transferBody(asset, amount, left.payees[asset] as string, {
        sequence_id: `${state}-${asset}`,
      })
      const again = await call<Transfer>(old, 'POST', '/dac/v1/transaction', body, {
        sign: { privateKey: left.callerKey },
      })
      assert.deepEqual(
        [again.status, again.body.id, again.headers.get('idempotent-replayed')],
        [200, id, 'true'],
        again.text,
      )
      assert.equal(again.body['memo'], '', 'the earlier version answered null')
    }
  }
  assert.equal(await etherOf(left.payees['ETH'] as string), 7n * ETHER)
})

test('signs new transfers before and after each node rotates its key-encryption key', async () => {
  for (const asset of ['BTC', 'ETH']) await newTransfer(asset, '0.01', `new-${asset}`)
  assert.equal(await platform.stop(), 0)
  await platform.nodesDown([1, 2, 3], async () => {
    for (const node of [1, 2, 3]) {
      const folder = join(home, 'signers', `node-${node}`)
      const words = [
        join(import.meta.dirname, '../../signer/src/kek.ts'),
        'rotate',
        '--home',
        folder,
        '--kek',
        'file:path=kek-2',
      ]
      const rotated = spawnSync(process.execPath, words, { encoding: 'utf8' })
      assert.equal(rotated.status, 0, rotated.stderr)
      assert.ok(existsSync(join(folder, 'keys.json')), rotated.stdout)
    }
  })
  await platform.start()
  user = { ...user, base: platform.base }
  for (const asset of ['BTC', 'ETH']) await newTransfer(asset, '0.01', `rotated-${asset}`)
  await platform.atRest()
  await audited()
})

test('refuses to start on a database that a newer version has migrated', async () => {
  await platform.database.query(`insert into migrations (name) values ('999_of_tomorrow.sql')`)
  await platform.stop()
  await assert.rejects(platform.start(), /changed by a newer version \(999_of_tomorrow\.sql\)/)
})
