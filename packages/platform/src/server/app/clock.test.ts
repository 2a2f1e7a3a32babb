import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import type { Database } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { clockLoop } from './clock.ts'
import { housekeepingLoop } from './housekeeping.ts'
import { shared } from '../../core/engine/shared.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { Callers } from '../../core/http/authentication/callers.ts'
import { advance, claim, LEASE_MS, wake } from '../../core/engine/lease.ts'
import { useDatabase, DepositFixture, type Tenant } from '../../../testing/deposits-support.ts'
import { PUBLIC_KEY } from '../../../testing/harness.ts'

/**
 * Tests that leases, due work and rate windows use the environment's clock. It is years behind the
 * machine's clock here, so code that used the machine's clock would treat everything as expired or
 * due.
 */
const START = Date.UTC(2020, 0, 1)
let now = START
const opened = useDatabase({ migrated: true, now: () => now })
let database: Database
let fixture: DepositFixture
let alice: Tenant

beforeEach(async () => {
  await opened.started
  now = START
  database = opened.get()
  fixture = new DepositFixture(database, 'evm')
  await fixture.open()
  alice = await fixture.tenant(`alice ${randomUUID()}`)
})

async function withdrawal(dueMs: number): Promise<string> {
  const id = randomUUID()
  await database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type,
       destination_type, state, status, next_run_at)
     values ($1, 'WITHDRAWAL', $2, $3, $4, 'ETH', 'ETH', 7, 'ETH', 'INTERNAL', 'EXTERNAL',
       'CONFIRMING', 'pending', $5)`,
    [id, alice.workspace, alice.subAccount, alice.wallets['ETH'], new Date(dueMs)],
  )
  return id
}
const taken = async () => (await claim(fixture.services, 10)).map(({ id }) => id)
const dueOf = async (id: string) =>
  (
    await database.one<{ next_run_at: Date }>(
      'select next_run_at from transactions where id = $1',
      [id],
    )
  )?.next_run_at.getTime()

test('a transaction is leased when it is due by the clock, and again when its lease ends', async () => {
  const id = await withdrawal(START + 1000)
  assert.deepEqual(await taken(), [])
  now = START + 1000
  assert.deepEqual(await taken(), [id])
  now += LEASE_MS
  assert.deepEqual(await taken(), [], 'leased up to this moment')
  now += 1
  assert.deepEqual(await taken(), [id])
})

test('the next step and the wake-up by a new block are scheduled by the injected clock', async () => {
  const id = await withdrawal(START)
  const [row] = await claim(fixture.services, 10)
  await advance(database, row as TransactionRow, { state: 'BROADCASTING', run_in_ms: 5000 })
  assert.equal(await dueOf(id), START + 5000)
  const moved = await database.one<{ updated_at: Date }>(
    'select updated_at from transactions where id = $1',
    [id],
  )
  assert.equal(moved?.updated_at.getTime(), START)
  now = START + 2000
  await wake(database, 'ETH')
  assert.equal(await dueOf(id), START + 2000)
})

test('a scan that another worker has leased continues when that lease ends', async () => {
  const height = async () =>
    (await database.one<{ height: string }>('select height from network_scans'))?.height
  await database.query(
    'update network_scans set lease_token = gen_random_uuid(), lease_until = $1',
    [new Date(START + 1000)],
  )
  fixture.chain.mine()
  await fixture.scan()
  assert.equal(await height(), '0')
  now = START + 1001
  await fixture.scan()
  assert.equal(await height(), '1')
})

test('used nonces are stored for ten minutes of the clock, and rate-limit windows for five', async () => {
  const [key, window] = [randomUUID(), new Date(START)]
  const admit = async () =>
    database.one<{ nonce_ok: boolean; requests: number }>(
      'select * from admit_requests($1, $2, $3, $4, $5, $6)',
      [[key], ['nonce'], ['subject'], [100], window, new Date(now)],
    )
  const tidy = () => housekeepingLoop(fixture.services).run(new AbortController().signal)
  assert.deepEqual(await admit(), { nonce_ok: true, requests: 1 })
  now = START + 5 * 60_000
  await tidy()
  assert.deepEqual(await admit(), { nonce_ok: false, requests: 2 })
  now = START + 10 * 60_000
  await tidy()
  assert.deepEqual(
    await admit(),
    { nonce_ok: false, requests: 1 },
    'the window is forgotten, the nonce is not',
  )
  now += 1
  await tidy()
  assert.equal((await admit())?.nonce_ok, true)
})

test('when a clock that was hours ahead is corrected, waiting work becomes due by the new time', async () => {
  const HOURS = 6 * 3_600_000
  await database.query(`update network_scans set updated_at = $1`, [database.now()])
  const loop = clockLoop(fixture.services)
  await loop.run(new AbortController().signal)
  const [sooner, leased, later] = [
    await withdrawal(START + 1000),
    await withdrawal(START),
    await withdrawal(START + HOURS + 5000),
  ]
  now += HOURS
  await loop.run(new AbortController().signal)
  assert.deepEqual(
    [await dueOf(sooner), await dueOf(later)],
    [START + 1000, START + HOURS + 5000],
    'forward nothing is changed: it is due as it is',
  )
  assert.deepEqual(new Set(await taken()), new Set([sooner, leased]))
  now = START + 2000
  await loop.run(new AbortController().signal)
  assert.equal(await dueOf(later), START + 2000 + 5000)
  assert.deepEqual(await taken(), [], 'what is leased stays so for as long as the lease had left')
  now += LEASE_MS + 1
  assert.deepEqual(new Set(await taken()), new Set([sooner, leased, later]))
  now += 6 * 3_600_000
  await database.query(`update network_scans set updated_at = $1`, [database.now()])
  const put = await withdrawal(now + 5000)
  now -= HOURS
  await clockLoop(fixture.services).run(new AbortController().signal)
  assert.equal(await dueOf(put), now + 5000, 'a process that starts after that sees it too')
  const before = await dueOf(later)
  now -= 900
  await loop.run(new AbortController().signal)
  assert.equal(
    await dueOf(later),
    before,
    'a clock is corrected by less than a second all the time',
  )
})

test('in-memory caches expire normally when the clock is set back by hours', async () => {
  let requestCount = 0
  const question = shared(
    async () => ++requestCount,
    1000,
    () => now,
  )
  const key = randomUUID()
  await database.query(
    `insert into api_users (api_key, sub_account_id, role, public_key_pem)
      values ($1, $2, 'full', $3)`,
    [key, alice.subAccount, PUBLIC_KEY],
  )
  const callers = new Callers(database, { ...systemEnvironment(), now: () => now })
  now += 6 * 3_600_000
  await question()
  assert.equal((await callers.find(key))?.apiKey, key)
  await database.query('update api_users set revoked_at = $2 where api_key = $1', [
    key,
    database.now(),
  ])
  now = START
  assert.equal(await question(), 2)
  assert.equal(await callers.find(key), null, 'a key that was revoked is')
})
