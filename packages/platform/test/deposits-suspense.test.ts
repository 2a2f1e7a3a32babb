import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setWallet } from '../src/operator/wallets.ts'
import { showSuspense } from '../src/operator/show-suspense.ts'
import { assignSuspense, listSuspense } from '../src/operator/suspense.ts'
import { creditWaitingDeposits } from '../src/deposits/waiting.ts'
import { presentTransaction } from '../src/engine/present.ts'
import { newId, registry, useDatabase, World, type Tenant } from './deposits-support.ts'
import { testEmittedEvents } from './event-assertions.ts'

/** Coins that no wallet holds yet are booked, and no tenant reads of them as confirmed. */
const database = useDatabase()

async function suspended(): Promise<{ world: World; alice: Tenant; id: string }> {
  const world = new World(database.get(), 'xrp')
  await world.open()
  const alice = await world.tenant('alice')
  world.chain.mine({
    txid: newId(),
    outcome: [
      { position: 0, asset: 'XRP', address: alice.omnibus, amount: 7_000_000n, tag: '4000000000' },
    ],
  })
  world.chain.bury()
  await world.settle()
  const [row] = await world.deposits()
  return { world, alice, id: row?.id as string }
}

const shown = async (world: World) => {
  const [row] = await world.deposits()
  const { status, sub_status: sub, confirmed_at: at } = presentTransaction(row!, registry)
  return { status, sub, isConfirmedAt: at !== null }
}
const events = async () =>
  (await database.get().query<{ type: string }>('select type from events order by id')).map(
    ({ type }) => type,
  )

test('deposits of an inactive wallet are credited', async () => {
  const world = new World(database.get(), 'evm')
  await world.open()
  const alice = await world.tenant('alice')
  await setWallet(world.services, { id: alice.wallets['ETH'], status: 'inactive' })
  world.chain.mine({
    txid: '0xpaid',
    outcome: [{ position: 0, asset: 'ETH', address: alice.omnibus, amount: 7n }],
  })
  world.chain.bury()
  await world.settle()
  assert.deepEqual(await world.books(alice), { ETH: '7' })
})

test('a deposit in suspense is pending until the operator assigns it', async () => {
  const { world, alice, id } = await suspended()
  const before = await events()
  assert.deepEqual(await shown(world), { status: 'pending', sub: 'SUSPENSE', isConfirmedAt: false })
  assert.deepEqual(before.slice(-2), ['deposit.detected', 'deposit.suspended'])
  assert.deepEqual(await world.books(alice), { XRP: '7000000' })
  const listed = (await listSuspense(world.services, {})) as { suspense: Record<string, unknown>[] }
  assert.ok(
    showSuspense(listed.suspense)[0]?.startsWith(`${id}  `),
    'what is printed first is what assign takes',
  )
  await assignSuspense(world.services, { id })
  assert.deepEqual(await shown(world), {
    status: 'confirmed',
    sub: 'CREDITED',
    isConfirmedAt: true,
  })
  assert.deepEqual((await events()).slice(before.length), ['deposit.confirmed'])
})

test('a deposit that waits for its wallet is confirmed when the wallet is made', async () => {
  const { world, alice } = await suspended()
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
        world.services,
        tx,
        { workspaceId: alice.workspace, subAccountId: alice.subAccount },
        wallet as Parameters<typeof creditWaitingDeposits>[3],
      ),
    )
  assert.deepEqual(await shown(world), {
    status: 'confirmed',
    sub: 'CREDITED',
    isConfirmedAt: true,
  })
  assert.deepEqual((await events()).slice(before.length), ['deposit.confirmed'])
})

test('a reorganisation removes it from suspense', async () => {
  const { world, alice } = await suspended()
  world.chain.drop(world.chain.blocks.length - 1)
  for (let count = 0; count < 6; count++) world.chain.mine()
  await world.settle()
  assert.deepEqual(await shown(world), { status: 'failed', sub: 'REORGED', isConfirmedAt: false })
  assert.deepEqual(await world.books(alice), {})
})

testEmittedEvents(database.get, ['deposit.suspended'])
