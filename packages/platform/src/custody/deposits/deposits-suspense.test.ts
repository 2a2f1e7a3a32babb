import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setWallet } from '../../server/operator/wallets.ts'
import { showSuspense } from '../../server/operator/books/show-suspense.ts'
import { assignSuspense, listSuspense } from '../../server/operator/books/suspense.ts'
import { creditWaitingDeposits } from './waiting.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import {
  newId,
  registry,
  useDatabase,
  DepositFixture,
  type Tenant,
} from '../../../testing/deposits-support.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

/**
 * Tests that coins that do not belong to a wallet yet are booked in suspense, and that no tenant
 * sees them as confirmed.
 */
const database = useDatabase()

async function suspended(): Promise<{ fixture: DepositFixture; alice: Tenant; id: string }> {
  const fixture = new DepositFixture(database.get(), 'xrp')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  fixture.chain.mine({
    txid: newId(),
    outcome: [
      { position: 0, asset: 'XRP', address: alice.omnibus, amount: 7_000_000n, tag: '4000000000' },
    ],
  })
  fixture.chain.bury()
  await fixture.settle()
  const [row] = await fixture.deposits()
  return { fixture, alice, id: row?.id as string }
}

const shown = async (fixture: DepositFixture) => {
  const [row] = await fixture.deposits()
  const { status, sub_status: sub, confirmed_at: at } = presentTransaction(row!, registry)
  return { status, sub, isConfirmedAt: at !== null }
}
const events = async () =>
  (await database.get().query<{ type: string }>('select type from events order by id')).map(
    ({ type }) => type,
  )

test('credits deposits of an inactive wallet', async () => {
  const fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  await setWallet(fixture.services, { id: alice.wallets['ETH'], status: 'inactive' })
  fixture.chain.mine({
    txid: '0xpaid',
    outcome: [{ position: 0, asset: 'ETH', address: alice.omnibus, amount: 7n }],
  })
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '7' })
})

test('a deposit in suspense stays pending until the operator assigns it', async () => {
  const { fixture, alice, id } = await suspended()
  const before = await events()
  assert.deepEqual(await shown(fixture), {
    status: 'pending',
    sub: 'SUSPENSE',
    isConfirmedAt: false,
  })
  assert.deepEqual(before.slice(-2), ['deposit.detected', 'deposit.suspended'])
  assert.deepEqual(await fixture.books(alice), { XRP: '7000000' })
  const listed = (await listSuspense(fixture.services, {})) as {
    suspense: Record<string, unknown>[]
  }
  assert.ok(
    showSuspense(listed.suspense)[0]?.startsWith(`${id}  `),
    'what is printed first is what assign takes',
  )
  await assignSuspense(fixture.services, { id })
  assert.deepEqual(await shown(fixture), {
    status: 'confirmed',
    sub: 'CREDITED',
    isConfirmedAt: true,
  })
  assert.deepEqual((await events()).slice(before.length), ['deposit.confirmed'])
  assert.deepEqual(await fixture.database.query('select action, object from audit_log'), [
    { action: 'suspense.assigned', object: id },
  ])
})

test('a deposit without a wallet is confirmed when the wallet is created', async () => {
  const { fixture, alice } = await suspended()
  await database.get().query('update transactions set address_tag = null')
  const before = await events()
  const wallet = {
    id: alice.wallets['XRP'] as string,
    asset: 'XRP',
    status: 'active',
    created_at: new Date(),
    network: 'XRP',
  }
  await database
    .get()
    .transaction((tx) =>
      creditWaitingDeposits(
        fixture.services,
        tx,
        { workspaceId: alice.workspace, subAccountId: alice.subAccount },
        wallet as Parameters<typeof creditWaitingDeposits>[3],
      ),
    )
  assert.deepEqual(await shown(fixture), {
    status: 'confirmed',
    sub: 'CREDITED',
    isConfirmedAt: true,
  })
  assert.deepEqual((await events()).slice(before.length), ['deposit.confirmed'])
})

test('a reorganisation removes a deposit in suspense', async () => {
  const { fixture, alice } = await suspended()
  fixture.chain.drop(fixture.chain.blocks.length - 1)
  for (let count = 0; count < 6; count++) fixture.chain.mine()
  await fixture.settle()
  assert.deepEqual(await shown(fixture), { status: 'failed', sub: 'REORGED', isConfirmedAt: false })
  assert.deepEqual(await fixture.books(alice), {})
})

testEmittedEvents(database.get, ['deposit.suspended'])
