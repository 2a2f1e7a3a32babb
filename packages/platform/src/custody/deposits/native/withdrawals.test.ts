import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignSuspense, listSuspense } from '../../../server/operator/books/suspense.ts'
import { presentTransaction } from '../../../core/engine/present.ts'
import {
  DEPTH,
  DepositFixture,
  useDatabase,
  type Tenant,
} from '../../../../testing/deposits-support.ts'

/**
 * Tests of native coins that a block pays without a transaction, as the withdrawals of validators.
 * The local EVM chain makes none, so the chain is scripted.
 */
const database = useDatabase()

async function opened(): Promise<{ fixture: DepositFixture; alice: Tenant }> {
  const fixture = new DepositFixture(database.get(), 'evm')
  await fixture.open()
  // A withdrawal has no transaction that a node could return.
  fixture.chain.status = async (txid) => assert.fail(`the status of ${txid} was queried`)
  return { fixture, alice: await fixture.tenant('alice') }
}

const withdraw = ({ chain }: DepositFixture, { deposit }: Tenant, amount = 7n, index = 5) => {
  const block = chain.mine({
    txid: `withdrawal:${index}`,
    outcome: [
      {
        position: 0,
        asset: 'ETH',
        address: deposit,
        amount,
        sender: null,
        senders: { addresses: [], complete: true },
        coinbase: true,
        withoutTransaction: true,
      },
    ],
  })
  block.txids = []
}

test('credits a withdrawal of a validator at its depth, without a transaction hash', async () => {
  const { fixture, alice } = await opened()
  withdraw(fixture, alice)
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), {})
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '7' })
  const [row] = await fixture.deposits()
  assert.ok(row)
  assert.deepEqual([row.state, row.hash, row.source_id], ['CREDITED', null, null])
  assert.equal(presentTransaction(row, fixture.services.registry).hash, null)
})

test('screening does not hold a withdrawal, which has no sender', async () => {
  const { fixture, alice } = await opened()
  await fixture.screenDeposits(alice)
  withdraw(fixture, alice)
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '7' })
  assert.deepEqual(fixture.requests, [])
})

test('a withdrawal that a reorganisation moves is credited once; another amount is a new deposit', async () => {
  const { fixture, alice } = await opened()
  withdraw(fixture, alice)
  fixture.chain.bury()
  await fixture.settle()
  fixture.chain.drop(DEPTH + 1)
  fixture.chain.mine()
  withdraw(fixture, alice)
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '7' })
  assert.equal((await fixture.deposits()).length, 1)
  fixture.chain.drop(DEPTH + 1)
  withdraw(fixture, alice, 9n)
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '9' })
})

test('withdrawals of equal amount to one address are separate deposits', async () => {
  const { fixture, alice } = await opened()
  for (const index of [5, 6]) withdraw(fixture, alice, 7n, index)
  fixture.chain.bury()
  await fixture.settle()
  assert.deepEqual(await fixture.books(alice), { ETH: '14' })
  assert.equal((await fixture.deposits()).length, 2)
})

test('a withdrawal to an address without a wallet waits in suspense until it is assigned', async () => {
  const { fixture, alice } = await opened()
  await database.admin().query('delete from wallet_addresses')
  await database.admin().query(`delete from wallets where asset = 'ETH'`)
  withdraw(fixture, alice)
  fixture.chain.bury()
  await fixture.settle()
  const [row] = await fixture.deposits()
  assert.deepEqual([row?.state, row?.hash], ['SUSPENSE', null])
  const { suspense } = (await listSuspense(fixture.services, {})) as { suspense: object[] }
  assert.equal(suspense.length, 1)
  await fixture.database.query(
    `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, 'ETH', 'ETH')`,
    [alice.workspace, alice.subAccount],
  )
  await assignSuspense(fixture.services, { id: row?.id })
  assert.equal((await fixture.deposits())[0]?.state, 'CREDITED')
})
