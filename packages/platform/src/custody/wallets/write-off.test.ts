import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import {
  DEPTH,
  DepositFixture,
  useDatabase,
  type Tenant,
} from '../../../testing/deposits-support.ts'
import { post } from '../../core/ledger/post.ts'
import { writeOffWallet } from '../../server/operator/books/write-off.ts'

/** Tests of a wallet that a reorganisation left below zero, and that the operator writes off. */
const database = useDatabase()
const COIN = 700n

async function opened(): Promise<{ fixture: DepositFixture; alice: Tenant }> {
  const fixture = new DepositFixture(database.get(), 'utxo')
  await fixture.open()
  const alice = await fixture.tenant('alice')
  mine(fixture, alice)
  await fixture.settle()
  return { fixture, alice }
}

function mine({ chain }: DepositFixture, { deposit }: Tenant): void {
  const outcome = [{ position: 0, asset: 'BTC', address: deposit, amount: COIN }]
  chain.mine({ txid: 'coin', outcome })
  chain.bury()
}

/** Removes the deposit's block. */
async function remove(fixture: DepositFixture): Promise<void> {
  fixture.chain.drop(DEPTH + 1)
  for (let count = 0; count < DEPTH + 2; count++) fixture.chain.mine()
  await fixture.settle()
}

/** Lets the wallet pay an amount, which leaves the platform. */
const spend = ({ workspace, wallets }: Tenant, amount: bigint) =>
  database.get().transaction((tx) => {
    const of = { workspace, asset: 'BTC' }
    return post(tx, 'settle', randomUUID(), [
      { ...of, wallet: wallets['BTC'], kind: 'available', amount: -amount },
      { ...of, kind: 'chain', amount },
    ])
  })

/** Returns what the wallet has, and what was written off of it. */
async function balances({ workspace }: Tenant): Promise<[available: bigint, lost: bigint]> {
  const rows = await database
    .get()
    .query<{ kind: string; balance: string }>(
      'select kind, balance::text from ledger_accounts where workspace_id = $1',
      [workspace],
    )
  const of = (kind: string) => BigInt(rows.find((each) => each.kind === kind)?.balance ?? 0)
  return [of('available'), of('written_off')]
}

const input = ({ wallets }: Tenant) => ({ id: wallets['BTC'], comment: 'paid in on 1 January' })

test('only what is below zero is written off, once, with an entry in the audit log', async () => {
  const { fixture, alice } = await opened()
  const off = (more: Record<string, unknown> = {}) =>
    writeOffWallet(fixture.services, { ...input(alice), ...more })
  await assert.rejects(off(), /OperatorError: the balance of the wallet is not below zero/)
  await spend(alice, 500n)
  await remove(fixture)
  assert.deepEqual(await balances(alice), [-500n, 0n])
  for (const comment of [undefined, '', 'x'.repeat(501)])
    await assert.rejects(
      off({ comment }),
      /OperatorError: --comment: must have 1 to 500 characters/,
    )
  await assert.rejects(off({ id: randomUUID() }), /OperatorError: --id: wallet \S+ does not exist/)
  assert.deepEqual(await database.get().query('select 1 from audit_log'), [])
  assert.equal((await off())['written_off'], '0.000005')
  assert.deepEqual(await balances(alice), [0n, -500n])
  await assert.rejects(off(), /not below zero/)
  assert.deepEqual(await database.get().query('select action, object from audit_log'), [
    { action: 'wallet.written_off', object: alice.wallets['BTC'] },
  ])
})

test('a deposit that returns repays what was written off, and each reorganisation undoes that', async () => {
  const { fixture, alice } = await opened()
  await spend(alice, 500n)
  await remove(fixture)
  await writeOffWallet(fixture.services, input(alice))
  for (let round = 0; round < 2; round++) {
    mine(fixture, alice)
    await fixture.settle()
    assert.deepEqual(await balances(alice), [200n, 0n])
    await remove(fixture)
    assert.deepEqual(await balances(alice), [0n, -500n])
  }
})

test('nothing is written off while transactions of the wallet wait for another block, or a final one is contradicted', async () => {
  const { fixture, alice } = await opened()
  await spend(alice, 500n)
  await remove(fixture)
  const set = (value: string | null) =>
    database.get().query('update network_scans set contradiction = $1', [value])
  await set(JSON.stringify({ height: 1, known: 'aa', other: 'bb', since: 'now' }))
  await assert.rejects(
    writeOffWallet(fixture.services, input(alice)),
    /nothing can be written off now: .* accept-reorg BTC 1 bb/,
  )
  await set(null)
  await database.get().query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount,
       fee_asset, source_type, destination_type, state, status, plan)
     values ($1, 'WITHDRAWAL', $2, $3, $4, 'BTC', 'BTC', 500, 'BTC', 'INTERNAL', 'EXTERNAL', 'CONFIRMING',
       'pending', '{"generation": "1"}')`,
    [randomUUID(), alice.workspace, alice.subAccount, alice.wallets['BTC']],
  )
  await assert.rejects(
    writeOffWallet(fixture.services, input(alice)),
    /1 transactions of the wallet wait for another block since a reorganisation/,
  )
  assert.deepEqual(await balances(alice), [-500n, 0n])
})
