import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Order } from '../../../../signer/src/policy/order.ts'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { NodeRefused } from './nodes.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests that transfers that wait at one address share a fuel transaction and are signed together.
 * The tests use the real steps and the rules of real nodes.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-hot-wallet-'))
const ETH = {
  code: 'ETH',
  to: '0x00000000000000000000000000000000000000AA',
  held: '50',
  amount: '0.1',
}
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

async function staged(play: (fixture: FamilyFixture) => Promise<void>): Promise<void> {
  const fixture = new FamilyFixture(database.get(), devnet, ETH, clock)
  try {
    await fixture.open()
    await play(fixture)
    await fixture.check()
  } finally {
    await fixture.close()
  }
}
async function concurrentTransfers(fixture: FamilyFixture, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at++) ids.push(await fixture.create(`crowd-${at}`))
  return ids
}
const fuels = async (fixture: FamilyFixture) =>
  fixture.database.query<{ state: string; parts: number }>(
    `select f.state, (select count(*)::int from fuel_parts p where p.fuel_id = f.id) parts
      from transactions f
   where kind = 'FUEL' order by created_at, id`,
  )
async function confirmed(fixture: FamilyFixture, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const row = await fixture.read(id)
    assert.deepEqual(
      [row.state, row.failure_reason, await fixture.onChain(id)],
      ['CONFIRMED', null, 1],
    )
  }
}
/** Returns the tokens of the requests that an order to the nodes contains. */
const shown = ({ purpose }: Order): string[] =>
  purpose.kind === 'fuel' && purpose.for.kind === 'pay'
    ? [purpose.for, ...(purpose.beside ?? []).map((each) => each.for)].map(
        ({ request }) => request.token,
      )
    : []
const tokenOf = async (fixture: FamilyFixture, id: string) =>
  (await fixture.read(id)).request?.token ?? ''

test('at most three fuel transactions pay for thirty concurrent transfers, each paid once', () =>
  staged(async (fixture) => {
    let requestCount = 0
    fixture.nodes.fault = () => {
      requestCount++
      return undefined
    }
    const before = await fixture.available()
    const ids = await concurrentTransfers(fixture, 30)
    await fixture.run()
    await confirmed(fixture, ids)
    const made = await fuels(fixture)
    assert.ok(made.length <= 3, JSON.stringify(made))
    assert.equal(
      made.reduce((sum, { parts }) => sum + parts, 0),
      30,
    )
    assert.ok(requestCount <= 33, `the nodes were asked ${requestCount} times`)
    assert.equal(before - (await fixture.available()), 30n * fixture.amount)
  }))

for (const commit of [
  'fuel-reserved',
  'built',
  'signed',
  'broadcasting',
  'broadcast',
  'included',
  'settled',
]) {
  test(`pays each concurrent transfer once if the process ends after commit ${commit}`, () =>
    staged(async (fixture) => {
      const ids = await concurrentTransfers(fixture, 4)
      fixture.crashAt = `transaction.${commit}`
      await fixture.run()
      assert.equal(fixture.crashAt, null, 'it was reached')
      await confirmed(fixture, ids)
    }))
}

test('a transfer that the nodes refuse fails, and the others get a new fuel transaction', () =>
  staged(async (fixture) => {
    const before = await fixture.available()
    const ids = await concurrentTransfers(fixture, 5)
    const bad = await tokenOf(fixture, ids[2] as string)
    fixture.nodes.fault = (order) => (shown(order).includes(bad) ? 'refuse' : undefined)
    await fixture.run()
    await confirmed(
      fixture,
      ids.filter((_, at) => at !== 2),
    )
    const row = await fixture.read(ids[2] as string)
    assert.deepEqual([row.state, row.hash], ['FAILED', null])
    assert.match(row.failure_reason ?? '', /its fuel transaction failed/)
    assert.equal(before - (await fixture.available()), 4n * fixture.amount)
  }))

test('cancelling one transfer of a shared fuel transaction does not affect the others', () =>
  staged(async (fixture) => {
    const ids = await concurrentTransfers(fixture, 4)
    await fixture.runTo(ids[3] as string, 'FUELING')
    await fixture.cancel(ids[3] as string)
    await fixture.run()
    await confirmed(fixture, ids.slice(0, 3))
    assert.equal((await fixture.read(ids[3] as string)).state, 'CANCELLED')
  }))

test('transfers that arrive while a fuel transaction is pending share the next one', () =>
  staged(async (fixture) => {
    const first = await fixture.create('first')
    await fixture.runTo(first, 'FUELING')
    const [fuel] = await fixture.database.query<{ id: string }>(
      `select id from transactions where kind = 'FUEL'`,
    )
    await fixture.runTo((fuel as { id: string }).id, 'CONFIRMING')
    const ids = [first, ...(await concurrentTransfers(fixture, 3))]
    // Without a new block, only the transfer's own timer wakes it.
    for (const id of ids.slice(1)) await fixture.runTo(id, 'FUELING')
    assert.deepEqual(
      (await fuels(fixture)).map(({ parts }) => parts),
      [1, 3],
    )
    await fixture.run()
    await confirmed(fixture, ids)
  }))

/** Returns the number of payments in each signing request to the nodes, in order. */
function watchRuns(fixture: FamilyFixture): number[] {
  const runs: number[] = []
  const { signers } = fixture.services
  const call = signers.call.bind(signers)
  Object.assign(signers, {
    call: (
      node: number,
      method: 'GET' | 'POST',
      path: string,
      body: unknown,
      timeoutMs: number,
    ) => {
      if (path === '/sign-run') runs.push((body as { run: unknown[] }).run.length)
      return call(node, method, path, body, timeoutMs)
    },
  })
  return runs
}
/**
 * Asserts that at least three payments were signed together. How many are queued when the first is
 * signed depends on timing.
 */
const wereTogether = (runs: readonly number[]) => assert.ok(Math.max(...runs) >= 3, runs.join())
const numbers = async (fixture: FamilyFixture) =>
  (
    await fixture.database.query<{ nonce: number }>(
      `select c.nonce::int nonce from chain_transactions c
        join transactions t on t.id = c.transaction_id
   where t.kind = 'WITHDRAWAL' and c.state = 'CONFIRMED' order by c.nonce`,
    )
  ).map(({ nonce }) => nonce)
const upTo = (count: number) => Array.from({ length: count }, (_, at) => at)

test('transfers queued behind a payment are signed with it; lost responses skip no nonce', () =>
  staged(async (fixture) => {
    const runs = watchRuns(fixture)
    const ids = await concurrentTransfers(fixture, 8)
    let lost = 0
    fixture.nodes.fault = ({ purpose }) =>
      purpose.kind === 'pay' && lost < 8 && runs.length > 0 && ++lost > 0 ? 'lost' : undefined
    await fixture.turnUntil('the nodes sign and the answer is lost', () => lost > 0)
    // Nodes may store signatures that the platform does not know, so every submitted transaction
    // keeps its nonce.
    await fixture.cancel(ids[3] as string)
    await fixture.run()
    wereTogether(runs)
    for (const [at, id] of ids.entries()) {
      const { state } = await fixture.read(id)
      assert.ok(state === 'CONFIRMED' || (at === 3 && state === 'CANCELLED'), `${at} ${state}`)
    }
    assert.deepEqual(await numbers(fixture), upTo(8).slice(0, (await numbers(fixture)).length))
  }))

test('if the nodes refuse one payment of a batch, earlier ones are signed and later ones move up', () =>
  staged(async (fixture) => {
    const runs = watchRuns(fixture)
    const ids = await concurrentTransfers(fixture, 9)
    const bad = await tokenOf(fixture, ids[4] as string)
    fixture.nodes.fault = ({ purpose }) =>
      purpose.kind === 'pay' && purpose.request.token === bad ? 'refuse' : undefined
    await fixture.run()
    await confirmed(
      fixture,
      ids.filter((_, at) => at !== 4),
    )
    assert.equal((await fixture.read(ids[4] as string)).state, 'FAILED')
    assert.deepEqual(await numbers(fixture), upTo(8))
    wereTogether(runs)
  }))

test('while the nodes are unreachable the whole batch waits, and then continues', () =>
  staged(async (fixture) => {
    const ids = await concurrentTransfers(fixture, 5)
    fixture.fault = 'away'
    for (const id of ids) await fixture.runTo(id, 'SIGNING')
    for (let turns = 0; turns < 6; turns++) await fixture.turn()
    assert.equal(
      await fixture.database.one(
        `select 1 from chain_transactions c join transactions t on t.id = c.transaction_id
          where t.kind = 'WITHDRAWAL' and c.hash is not null`,
      ),
      undefined,
    )
    fixture.fault = undefined
    await fixture.run()
    await confirmed(fixture, ids)
    assert.deepEqual(await numbers(fixture), upTo(5))
  }))

test('a payment of a batch that must wait does not delay the earlier ones', () =>
  staged(async (fixture) => {
    const runs = watchRuns(fixture)
    const { signers } = fixture.services
    const call = signers.call.bind(signers)
    const ids = await concurrentTransfers(fixture, 6)
    let poor = ''
    let isShort = true
    /**
     * Number of earlier transfers in the first batch that contains several; the transfer is signed
     * when it is requested again.
     */
    let before = 0
    let signedMeanwhile = 0
    Object.assign(signers, {
      call: async (
        node: number,
        method: 'GET' | 'POST',
        path: string,
        body: {
          run?: { purpose: { request: { token: string } } }[]
          purpose?: { kind: string; request: { token: string } }
        },
        timeoutMs: number,
      ) => {
        const last = body?.run?.at(-1)
        if (poor === '' && body.run && last && body.run.length > 1) {
          poor = last.purpose.request.token
          before = body.run.length - 1
        }
        const at = (body?.run ?? []).findIndex(({ purpose }) => purpose.request.token === poor)
        const isAlone = body?.purpose?.kind === 'pay' && body.purpose.request.token === poor
        if (isShort && (at >= 0 || isAlone)) {
          signedMeanwhile = (await numbersSigned(fixture)).length
          throw new NodeRefused(node, 429, {
            error: 'BUDGET',
            message: 'used up for now',
            ...(isAlone ? {} : { at }),
          })
        }
        return call(node, method, path, body, timeoutMs)
      },
    })
    const areSigned = () => before > 0 && signedMeanwhile >= before
    for (let turns = 0; turns < 60 && !areSigned(); turns++) await fixture.turn()
    assert.ok(areSigned(), `those before it are signed: ${signedMeanwhile} of ${before}`)
    isShort = false
    await fixture.run()
    await confirmed(fixture, ids)
    assert.ok(Math.max(...runs) >= 2, runs.join())
  }))
const numbersSigned = (fixture: FamilyFixture) =>
  fixture.database.query(
    `select 1 from chain_transactions c join transactions t on t.id = c.transaction_id
      where t.kind = 'WITHDRAWAL' and c.hash is not null`,
  )
