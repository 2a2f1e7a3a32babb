import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FamilyName, Senders } from '@custody/chains'
import { releaseDeposit } from '../src/operator/aml-release.ts'
import { FAMILIES, useDatabase, World, type Tenant } from './deposits-support.ts'
import { testEmittedEvents } from './event-assertions.ts'

/**
 * Longest pause of a scan for the senders of a block: the constant of this name in
 * src/deposits/record.ts.
 */
const SENDERS_PATIENCE_MS = 3000

/**
 * Everyone who paid is screened; who cannot be known is held until the operator lets that deposit
 * go.
 */
const database = useDatabase()

async function openWorld(family: FamilyName): Promise<{ world: World; alice: Tenant }> {
  const world = new World(database.get(), family)
  await world.open()
  return { world, alice: await world.tenant('alice') }
}

/**
 * Pays alice 7 by these senders: in the block's own words, or as the node answers when it is asked.
 */
function pay(world: World, alice: Tenant, txid: string, senders: Senders | Error): void {
  const isCoin = world.network.family === 'utxo' || world.network.family === 'cardano'
  if (isCoin) world.chain.paidBy.set(txid, senders)
  const told =
    isCoin || senders instanceof Error ? {} : { sender: senders.addresses[0] ?? null, senders }
  world.chain.mine({
    txid,
    outcome: [{ position: 0, asset: world.assets[0], address: alice.deposit, amount: 7n, ...told }],
  })
  world.chain.bury()
}
const states = async (world: World) => (await world.deposits()).map(({ state }) => state)
const spendable = async (world: World, tenant: Tenant) =>
  (
    await database.get().query<{
      sum: string
    }>(
      `select coalesce(sum(balance), 0)::text sum from ledger_accounts
     where workspace_id = $1 and kind in ('available', 'unswept')`,
      [tenant.workspace],
    )
  )[0]?.sum

for (const family of Object.keys(FAMILIES) as FamilyName[]) {
  test(`${family}: a listed second sender is frozen, with screening and without`, async () => {
    const { world, alice } = await openWorld(family)
    world.sanctioned.add('listed')
    pay(world, alice, 'first', { addresses: ['clean', 'listed'], complete: true })
    await world.settle()
    assert.deepEqual([await states(world), await spendable(world, alice)], [['FROZEN'], '0'])
    await world.screenDeposits(alice)
    world.risks.set('flagged', 'SEVERE')
    pay(world, alice, 'second', { addresses: ['clean', 'clean too', 'flagged'], complete: true })
    await world.settle()
    assert.deepEqual(
      [await states(world), await spendable(world, alice)],
      [['FROZEN', 'FROZEN'], '0'],
    )
    assert.deepEqual(
      await database
        .get()
        .query<{ address: string; source: string }>(
          'select address, source from frozen_addresses order by address',
        ),
      [
        { address: 'flagged', source: 'CHAINALYSIS' },
        { address: 'listed', source: 'OFAC' },
      ],
    )
    assert.deepEqual(world.asked.sort(), ['clean', 'clean too', 'flagged'])
  })

  test(`${family}: with screening, a deposit of an unknown sender is held until the operator releases it`, async () => {
    const { world, alice } = await openWorld(family)
    await world.screenDeposits(alice)
    for (const txid of ['one', 'two'])
      pay(world, alice, txid, { addresses: ['clean'], complete: false })
    await world.settle()
    await world.step()
    assert.deepEqual(
      [await states(world), await spendable(world, alice)],
      [['FROZEN', 'FROZEN'], '0'],
    )
    const [one, two] = await world.deposits()
    assert.match(one?.failure_reason ?? '', /no known sender address/)
    const released = await releaseDeposit(world.services, { transaction: one?.id })
    assert.deepEqual(
      await releaseDeposit(world.services, { transaction: one?.id }),
      { ...released, again: true },
      'said again, done once',
    )
    await world.step()
    assert.deepEqual(
      (await world.deposits()).map(({ id, state, failure_reason: reason }) => [
        id,
        state,
        reason === null,
      ]),
      [
        [one?.id, 'CREDITED', true],
        [two?.id, 'FROZEN', false],
      ],
    )
    assert.equal(await spendable(world, alice), '7')
    assert.equal(world.logged.filter(({ message }) => message.includes('released')).length, 1)
    assert.equal(
      (await database.get().query(`select 1 from events where type = 'deposit.released'`)).length,
      1,
    )
  })
}

test('without screening an unknown sender passes, but a listed one besides it does not', async () => {
  const { world, alice } = await openWorld('utxo')
  world.sanctioned.add('listed')
  pay(world, alice, 'one', { addresses: [], complete: false })
  pay(world, alice, 'two', { addresses: ['listed'], complete: false })
  await world.settle()
  assert.deepEqual(await states(world), ['CREDITED', 'FROZEN'])
})

test('a release does not release a deposit that is frozen for a known sender', async () => {
  const { world, alice } = await openWorld('utxo')
  await world.screenDeposits(alice)
  world.risks.set('flagged', 'SEVERE')
  pay(world, alice, 'one', { addresses: ['flagged'], complete: false })
  await world.settle()
  const [row] = await world.deposits()
  await releaseDeposit(world.services, { transaction: row?.id })
  await world.step()
  assert.deepEqual([await states(world), await spendable(world, alice)], [['FROZEN'], '0'])
})

test('a deposit that was released and then removed by a reorganisation is held again', async () => {
  const { world, alice } = await openWorld('evm')
  await world.screenDeposits(alice)
  pay(world, alice, 'one', { addresses: ['clean'], complete: false })
  await world.settle()
  await releaseDeposit(world.services, { transaction: (await world.deposits())[0]?.id })
  await world.step()
  assert.deepEqual(await states(world), ['CREDITED'])
  world.chain.drop(3)
  world.chain.mine()
  pay(world, alice, 'one', { addresses: ['clean'], complete: false })
  await world.settle()
  assert.deepEqual([await states(world), await spendable(world, alice)], [['FROZEN'], '0'])
})

test('only a deposit held for an unknown sender can be released, and the refusal states why', async () => {
  const { world, alice } = await openWorld('evm')
  pay(world, alice, 'one', { addresses: ['clean'], complete: true })
  await world.settle()
  const [row] = await world.deposits()
  await assert.rejects(
    releaseDeposit(world.services, { transaction: row?.id }),
    /not held for an unknown sender; its state is CREDITED/,
  )
  for (const id of ['', 'nonsense', '00000000-0000-0000-0000-000000000000', undefined])
    await assert.rejects(releaseDeposit(world.services, { transaction: id }), /--transaction/)
})

test('a failed lookup of senders is retried, and never counts as an empty list', async () => {
  for (const on of [true, false]) {
    const { world, alice } = await openWorld('utxo')
    if (on) await world.screenDeposits(alice)
    world.sanctioned.add('listed')
    pay(world, alice, 'one', new Error('the node is away'))
    await world.settle()
    assert.deepEqual([await states(world), await spendable(world, alice)], [['SCREENING'], '0'])
    world.chain.paidBy.set('one', { addresses: ['clean', 'listed'], complete: true })
    await world.step()
    assert.deepEqual([await states(world), await spendable(world, alice)], [['FROZEN'], '0'])
    assert.equal((await world.deposits())[0]?.source_id, 'clean')
  }
})

test('a node that never reports the sender delays the scan by at most one pause, and nothing is credited', async () => {
  const { world, alice } = await openWorld('utxo')
  const pauses: number[] = []
  world.services.environment.sleep = async (milliseconds) => {
    pauses.push(milliseconds)
  }
  const hanging = new Set<(value: Senders) => void>()
  Object.assign(world.chain, {
    senders: () => new Promise<Senders>((resolve) => hanging.add(resolve)),
  })
  const outcome = [{ position: 0, asset: 'BTC', address: alice.deposit, amount: 7n }]
  world.chain.mine(...['one', 'two', 'three'].map((txid) => ({ txid, outcome })))
  world.chain.bury()
  await world.scan()
  assert.deepEqual(pauses, [SENDERS_PATIENCE_MS], 'the three deposits of a block share one pause')
  assert.deepEqual(
    [await states(world), hanging.size],
    [['SCREENING', 'SCREENING', 'SCREENING'], 1],
  )
  assert.equal(await spendable(world, alice), '0')
  for (const resolve of hanging) resolve({ addresses: ['late'], complete: true })
  Object.assign(world.chain, { senders: async () => ({ addresses: ['clean'], complete: true }) })
  await world.step()
  assert.deepEqual(
    [await states(world), await spendable(world, alice)],
    [['CREDITED', 'CREDITED', 'CREDITED'], '21'],
  )
})

test('a deposit recorded before senders were stored is screened by the senders in its block', async () => {
  const { world, alice } = await openWorld('tron')
  world.sanctioned.add('listed')
  pay(world, alice, 'one', { addresses: ['clean', 'listed'], complete: true })
  await world.scan()
  await database.get().query('update deposits set senders = null, senders_complete = null')
  await world.step()
  assert.deepEqual(await states(world), ['FROZEN'])
})

testEmittedEvents(database.get, ['deposit.frozen', 'address.frozen'])
