import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FamilyName, Senders } from '@custody/chains'
import { releaseDeposit } from '../../server/operator/aml-release.ts'
import {
  FAMILIES,
  useDatabase,
  DepositFixture,
  type Tenant,
} from '../../../testing/deposits-support.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

/**
 * Longest pause of a scan that waits for the senders of a block, in milliseconds. Copy of the
 * constant with this name in src/custody/deposits/record.ts.
 */
const SENDERS_PATIENCE_MS = 3000

/**
 * Tests that every sender of a deposit is screened. If a sender cannot be determined, the deposit
 * is held until the operator releases it.
 */
const database = useDatabase()

async function openFixture(
  family: FamilyName,
): Promise<{ fixture: DepositFixture; alice: Tenant }> {
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  return { fixture, alice: await fixture.tenant('alice') }
}

/**
 * Pays 7 to alice from these senders. Depending on the family, the block contains the senders or
 * the node returns them on request.
 */
function pay(fixture: DepositFixture, alice: Tenant, txid: string, senders: Senders | Error): void {
  const isCoin = fixture.network.family === 'utxo' || fixture.network.family === 'cardano'
  if (isCoin) fixture.chain.paidBy.set(txid, senders)
  const recorded =
    isCoin || senders instanceof Error ? {} : { sender: senders.addresses[0] ?? null, senders }
  fixture.chain.mine({
    txid,
    outcome: [
      { position: 0, asset: fixture.assets[0], address: alice.deposit, amount: 7n, ...recorded },
    ],
  })
  fixture.chain.bury()
}
const states = async (fixture: DepositFixture) =>
  (await fixture.deposits()).map(({ state }) => state)
const spendable = async (fixture: DepositFixture, tenant: Tenant) =>
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
  test(`${family}: freezes a deposit with any listed sender, with and without screening`, async () => {
    const { fixture, alice } = await openFixture(family)
    fixture.sanctioned.add('listed')
    pay(fixture, alice, 'first', { addresses: ['clean', 'listed'], complete: true })
    await fixture.settle()
    assert.deepEqual([await states(fixture), await spendable(fixture, alice)], [['FROZEN'], '0'])
    await fixture.screenDeposits(alice)
    fixture.risks.set('flagged', 'SEVERE')
    pay(fixture, alice, 'second', { addresses: ['clean', 'clean too', 'flagged'], complete: true })
    await fixture.settle()
    assert.deepEqual(
      [await states(fixture), await spendable(fixture, alice)],
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
    assert.deepEqual(fixture.requests.sort(), ['clean', 'clean too', 'flagged'])
  })

  test(`${family}: screening holds a deposit of an unknown sender until the operator releases it`, async () => {
    const { fixture, alice } = await openFixture(family)
    await fixture.screenDeposits(alice)
    for (const txid of ['one', 'two'])
      pay(fixture, alice, txid, { addresses: ['clean'], complete: false })
    await fixture.settle()
    await fixture.step()
    assert.deepEqual(
      [await states(fixture), await spendable(fixture, alice)],
      [['FROZEN', 'FROZEN'], '0'],
    )
    const [one, two] = await fixture.deposits()
    assert.match(one?.failure_reason ?? '', /no known sender address/)
    const released = await releaseDeposit(fixture.services, { transaction: one?.id })
    assert.deepEqual(
      await releaseDeposit(fixture.services, { transaction: one?.id }),
      { ...released, again: true },
      'said again, done once',
    )
    assert.deepEqual(await fixture.database.query('select action, object from audit_log'), [
      { action: 'deposit.released', object: one?.id },
    ])
    await fixture.step()
    assert.deepEqual(
      (await fixture.deposits()).map(({ id, state, failure_reason: reason }) => [
        id,
        state,
        reason === null,
      ]),
      [
        [one?.id, 'CREDITED', true],
        [two?.id, 'FROZEN', false],
      ],
    )
    assert.equal(await spendable(fixture, alice), '7')
    assert.equal(fixture.logged.filter(({ message }) => message.includes('released')).length, 1)
    assert.equal(
      (await database.get().query(`select 1 from events where type = 'deposit.released'`)).length,
      1,
    )
  })
}

test('screening credits a deposit of unknown senders below the value in the settings, and no other', async () => {
  const limit = 50_000_000n
  for (const [value, least, state] of [
    [limit - 1n, limit, 'CREDITED'],
    [limit, limit, 'FROZEN'],
    [null, limit, 'FROZEN'],
    [0n, 0n, 'FROZEN'],
  ] as const) {
    const { fixture, alice } = await openFixture('evm')
    await fixture.screenDeposits(alice)
    await fixture.database.query('update aml_settings set unknown_sender_usd = $1', [String(least)])
    pay(fixture, alice, 'one', { addresses: ['clean'], complete: false })
    await fixture.scan()
    await fixture.database.query(`update transactions set amount_usd = $1 where kind = 'DEPOSIT'`, [
      value === null ? null : String(value),
    ])
    await fixture.settle()
    assert.deepEqual(await states(fixture), [state], `${value} of ${least}`)
  }
  const { fixture, alice } = await openFixture('evm')
  await fixture.screenDeposits(alice)
  await fixture.database.query('update aml_settings set unknown_sender_usd = $1', [String(limit)])
  fixture.risks.set('flagged', 'SEVERE')
  pay(fixture, alice, 'one', { addresses: ['flagged'], complete: false })
  await fixture.scan()
  await fixture.database.query(`update transactions set amount_usd = 1 where kind = 'DEPOSIT'`)
  await fixture.settle()
  assert.deepEqual(await states(fixture), ['FROZEN'], 'a known sender is screened')
})

test('without screening, credits a deposit of unknown senders unless a known sender is listed', async () => {
  const { fixture, alice } = await openFixture('utxo')
  fixture.sanctioned.add('listed')
  pay(fixture, alice, 'one', { addresses: [], complete: false })
  pay(fixture, alice, 'two', { addresses: ['listed'], complete: false })
  await fixture.settle()
  assert.deepEqual(await states(fixture), ['CREDITED', 'FROZEN'])
})

test('the operator’s release does not release a deposit that is frozen for a known sender', async () => {
  const { fixture, alice } = await openFixture('utxo')
  await fixture.screenDeposits(alice)
  fixture.risks.set('flagged', 'SEVERE')
  pay(fixture, alice, 'one', { addresses: ['flagged'], complete: false })
  await fixture.settle()
  const [row] = await fixture.deposits()
  await releaseDeposit(fixture.services, { transaction: row?.id })
  await fixture.step()
  assert.deepEqual([await states(fixture), await spendable(fixture, alice)], [['FROZEN'], '0'])
})

test('holds a released deposit again after a reorganisation removed it', async () => {
  const { fixture, alice } = await openFixture('evm')
  await fixture.screenDeposits(alice)
  pay(fixture, alice, 'one', { addresses: ['clean'], complete: false })
  await fixture.settle()
  await releaseDeposit(fixture.services, { transaction: (await fixture.deposits())[0]?.id })
  await fixture.step()
  assert.deepEqual(await states(fixture), ['CREDITED'])
  fixture.chain.drop(3)
  fixture.chain.mine()
  pay(fixture, alice, 'one', { addresses: ['clean'], complete: false })
  await fixture.settle()
  assert.deepEqual([await states(fixture), await spendable(fixture, alice)], [['FROZEN'], '0'])
})

test('only a deposit held for an unknown sender can be released; other releases give the reason', async () => {
  const { fixture, alice } = await openFixture('evm')
  pay(fixture, alice, 'one', { addresses: ['clean'], complete: true })
  await fixture.settle()
  const [row] = await fixture.deposits()
  await assert.rejects(
    releaseDeposit(fixture.services, { transaction: row?.id }),
    /not held for an unknown sender; its state is CREDITED/,
  )
  for (const id of ['', 'nonsense', '00000000-0000-0000-0000-000000000000', undefined])
    await assert.rejects(releaseDeposit(fixture.services, { transaction: id }), /--transaction/)
})

test('retries a failed sender query, and never treats it as an empty list', async () => {
  for (const on of [true, false]) {
    const { fixture, alice } = await openFixture('utxo')
    if (on) await fixture.screenDeposits(alice)
    fixture.sanctioned.add('listed')
    pay(fixture, alice, 'one', new Error('the node is away'))
    await fixture.settle()
    assert.deepEqual([await states(fixture), await spendable(fixture, alice)], [['SCREENING'], '0'])
    fixture.chain.paidBy.set('one', { addresses: ['clean', 'listed'], complete: true })
    await fixture.step()
    assert.deepEqual([await states(fixture), await spendable(fixture, alice)], [['FROZEN'], '0'])
    assert.equal((await fixture.deposits())[0]?.source_id, 'clean')
  }
})

test('a node that never reports the sender delays the scan by one pause, and credits nothing', async () => {
  const { fixture, alice } = await openFixture('utxo')
  const pauses: number[] = []
  fixture.services.environment.sleep = async (milliseconds) => {
    pauses.push(milliseconds)
  }
  const hanging = new Set<(value: Senders) => void>()
  Object.assign(fixture.chain, {
    senders: () => new Promise<Senders>((resolve) => hanging.add(resolve)),
  })
  const outcome = [{ position: 0, asset: 'BTC', address: alice.deposit, amount: 7n }]
  fixture.chain.mine(...['one', 'two', 'three'].map((txid) => ({ txid, outcome })))
  fixture.chain.bury()
  await fixture.scan()
  assert.deepEqual(pauses, [SENDERS_PATIENCE_MS], 'the three deposits of a block share one pause')
  assert.deepEqual(
    [await states(fixture), hanging.size],
    [['SCREENING', 'SCREENING', 'SCREENING'], 1],
  )
  assert.equal(await spendable(fixture, alice), '0')
  for (const resolve of hanging) resolve({ addresses: ['late'], complete: true })
  Object.assign(fixture.chain, { senders: async () => ({ addresses: ['clean'], complete: true }) })
  await fixture.step()
  assert.deepEqual(
    [await states(fixture), await spendable(fixture, alice)],
    [['CREDITED', 'CREDITED', 'CREDITED'], '21'],
  )
})

test('screens an earlier deposit without stored senders by the senders in its block', async () => {
  const { fixture, alice } = await openFixture('tron')
  fixture.sanctioned.add('listed')
  pay(fixture, alice, 'one', { addresses: ['clean', 'listed'], complete: true })
  await fixture.scan()
  await database.get().query('update deposits set senders = null, senders_complete = null')
  await fixture.step()
  assert.deepEqual(await states(fixture), ['FROZEN'])
})

testEmittedEvents(database.get, ['deposit.frozen', 'address.frozen'])
