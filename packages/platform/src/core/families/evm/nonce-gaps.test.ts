import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../http/endpoint.ts'
import { useDatabase } from '../../../../testing/deposits-support.ts'
import {
  now,
  NONCE_ADDRESSES,
  NonceFixture,
  type Outcome,
} from '../../../../testing/chains/nonce-fixture.ts'
import type { Fault } from '../../../../testing/in-process-nodes.ts'
import type { ScriptedEvm } from '../../../../testing/chains/scripted-evm.ts'
import type { ScriptedXrp } from '../../../../testing/chains/scripted-xrp.ts'

/**
 * Tests transfers of two sub-accounts that share one gas tank, while nodes refuse, responses are
 * lost, processes end, callers cancel and the pool drops transactions. No nonce stays open, and no
 * transfer waits for a failing one of another sub-account.
 */
const database = useDatabase({ migrated: true, now })

async function staged(
  seed: number,
  code: keyof typeof NONCE_ADDRESSES,
  play: (fixture: NonceFixture) => Promise<void>,
): Promise<void> {
  const fixture = new NonceFixture(database.get(), seed, NONCE_ADDRESSES[code]())
  await fixture.open()
  try {
    await play(fixture)
  } finally {
    fixture.close()
  }
}

/** Runs transfers until a number of one kind has been submitted to the nodes, whose answers have a fault. */
async function submitAll(
  fixture: NonceFixture,
  kind: 'WITHDRAWAL' | 'FUEL',
  count: number,
  fault: Fault,
): Promise<void> {
  const { nodes } = fixture
  const faultOf = nodes.fault
  const purpose = kind === 'FUEL' ? 'fuel' : 'pay'
  nodes.fault = (order) => (order.purpose.kind === purpose ? fault : faultOf(order))
  const submitted = () =>
    database.get().query(
      `select 1 from chain_transactions c join transactions t on t.id = c.transaction_id
       where t.kind = $1 and c.state = 'BUILT' and c.shown_at is not null`,
      [kind],
    )
  while ((await submitted()).length < count) assert.ok(await fixture.turn(60_000))
  nodes.fault = faultOf
}

test('three failing transfers of one sub-account do not block another sub-account', () =>
  staged(1, 'ETH', async (fixture) => {
    const [bad, good] = fixture.callers as [Caller, Caller]
    for (let count = 0; count < 3; count++) await fixture.create(bad, 'fuel')
    for (let count = 0; count < 20; count++) await fixture.create(good, 'good')
    await fixture.run(3000)
    assert.deepEqual(await fixture.check(), { 'fuel FAILED': 3, 'good CONFIRMED': 20 })
  }))

for (const code of ['ETH', 'XRP'] as const)
  test(`${code}: a nonce skipped by a refused transfer is filled immediately`, () =>
    staged(2, code, async (fixture) => {
      const [caller] = fixture.callers as [Caller]
      // All transfers wait at their nonces before the first of them is refused.
      for (let count = 0; count < 12; count++)
        await fixture.create(caller, count % 4 === 1 ? 'pay' : 'good')
      await fixture.run(3000)
      assert.deepEqual(await fixture.check(), { 'good CONFIRMED': 9, 'pay FAILED': 3 })
    }))

for (const code of ['ETH', 'XRP'] as const)
  test(`${code}: transfers whose run was lost follow although the first of them is refused`, () =>
    staged(5, code, async (fixture) => {
      const [caller] = fixture.callers as [Caller]
      // Nodes that have signed nothing for an XRP account do not know its next sequence, and would sign
      // any; which of the others gets the first one depends on the machine.
      await fixture.create(caller, 'good')
      await fixture.run(60_000)
      for (const fate of ['pay', 'good', 'good', 'good'] as const)
        await fixture.create(caller, fate)
      // No node answers, so the nodes may have signed any of the transfers.
      await submitAll(fixture, 'WITHDRAWAL', 4, 'away')
      await fixture.run(60_000)
      assert.deepEqual(await fixture.check(), { 'good CONFIRMED': 4, 'pay FAILED': 1 })
    }))

test('ETH: the next transfer takes the nonce of a failed one that the nodes have signed', () =>
  staged(6, 'ETH', async (fixture) => {
    const [bad, good] = fixture.callers as [Caller, Caller]
    // The tank's nonces are in this order.
    await fixture.create(bad, 'fuel')
    await submitAll(fixture, 'FUEL', 1, 'away')
    await fixture.create(good, 'good')
    await submitAll(fixture, 'FUEL', 2, 'away')
    const { nodes } = fixture
    const faultOf = nodes.fault
    let lost = 0
    nodes.fault = (order) => {
      if (order.purpose.kind !== 'fuel') return faultOf(order)
      lost++
      return 'lost'
    }
    while (lost < 2) assert.ok(await fixture.turn(60_000))
    nodes.fault = faultOf
    while (!(await fixture.isGapLeft())) assert.ok(await fixture.turn(60_000))
    await fixture.create(good, 'good')
    await fixture.run(60_000)
    assert.deepEqual(await fixture.check(), { 'fuel FAILED': 1, 'good CONFIRMED': 2 })
  }))

test('XRP: a dead transfer is rebuilt at its own sequence, and later ones follow', () =>
  staged(4, 'XRP', async (fixture) => {
    const [caller] = fixture.callers as [Caller]
    for (let count = 0; count < 3; count++) await fixture.create(caller, 'good')
    while (fixture.chain.pool.size < 3) assert.ok(await fixture.turn(3000))
    ;(fixture.chain as ScriptedXrp).kill()
    await fixture.run(60_000)
    assert.deepEqual(await fixture.check(), { 'good CONFIRMED': 3 })
    const built = await database
      .get()
      .query<{ state: string }>('select state from chain_transactions order by state')
    assert.deepEqual(
      built.map(({ state }) => state),
      [...Array(3).fill('CONFIRMED'), ...Array(3).fill('VOID')],
    )
  }))

/**
 * Maximum delay that refusals, lost responses and dropped transactions may cause by retries, in
 * milliseconds of the rows' time.
 */
const WAITED_MS_MAX = 60_000

test('confirms all valid ones of 200 transfers despite refusals, crashes and cancellations', () =>
  staged(3, 'ETH', async (fixture) => {
    const chain = fixture.chain as ScriptedEvm
    fixture.faults = 0.06
    const fates: Outcome[] = []
    while (fates.length < 200) {
      const draw = fixture.random()
      fates.push(draw < 0.08 ? 'fuel' : draw < 0.16 ? 'pay' : draw < 0.3 ? 'cancelled' : 'good')
    }
    const unasked: string[] = []
    for (const fate of fates) {
      const id = await fixture.create(
        fixture.callers[fixture.random() < 0.5 ? 0 : 1] as Caller,
        fate,
      )
      if (fate === 'cancelled') unasked.push(id)
      // Between two requests the workers run a few steps, so that transfers overlap at every step.
      for (let turns = Math.floor(fixture.random() * 3); turns > 0; turns--)
        await fixture.turn(WAITED_MS_MAX)
      chain.drop(() => fixture.random() < 0.1)
      while (unasked.length > 0 && fixture.random() < 0.3)
        await fixture.cancel(
          unasked.splice(Math.floor(fixture.random() * unasked.length), 1)[0] as string,
        )
    }
    chain.drop(() => fixture.random() < 0.5)
    for (const id of unasked) await fixture.cancel(id)
    fixture.faults = 0
    while (await fixture.turn(WAITED_MS_MAX))
      if (await fixture.isGapLeft()) await fixture.create(fixture.callers[0] as Caller, 'good')
    const counts = await fixture.check()
    assert.ok(
      (counts['good CONFIRMED'] ?? 0) > 100 &&
        (counts['fuel FAILED'] ?? 0) > 5 &&
        (counts['pay FAILED'] ?? 0) > 5 &&
        (counts['cancelled CANCELLED'] ?? 0) > 10,
      JSON.stringify(counts),
    )
  }))
