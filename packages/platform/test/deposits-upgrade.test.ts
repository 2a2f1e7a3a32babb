import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { migrate } from '../src/database/migrate.ts'
import type { Database } from '../src/database/pool.ts'
import { DEPTH, useDatabase, World } from './deposits-support.ts'

/** An installation that recorded deposits by their place in a block is not to credit them again by what they are. */
const database = useDatabase({ migrated: false })
const folder = new URL('../src/database/migrations/', import.meta.url)

async function migrateUpTo(target: Database, last: string): Promise<void> {
  await target.query('create table migrations (name text primary key, applied_at timestamptz not null default now())')
  for (const name of readdirSync(folder)
    .filter((file) => file.endsWith('.sql') && file < last)
    .sort()) {
    await target.query(readFileSync(new URL(name, folder), 'utf8'))
    await target.query('insert into migrations (name) values ($1)', [name])
  }
}

test('a reorganisation after an upgrade revives deposits of before, whatever log index they had, and credits none twice', async () => {
  const old = database.get()
  await migrateUpTo(old, '017')
  const world = new World(old, 'evm')
  await world.open()
  const alice = await world.tenant('alice')
  const paid = { asset: 'USDT_ETH', address: alice.deposit, amount: 5n, sender: 'somebody' }
  const { hash } = world.chain.mine({
    txid: '0xold',
    outcome: [
      { ...paid, position: 41 },
      { ...paid, position: 42 },
      { ...paid, position: 43, amount: 6n },
    ],
  })
  const ids: string[] = []
  for (const [position, amount] of [
    [41, 5],
    [42, 5],
    [43, 6],
  ]) {
    const id = randomUUID()
    ids.push(id)
    await old.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee_asset, source_type, source_id,
         destination_type, destination_id, state, status, hash, confirmations)
       values ($1, 'DEPOSIT', $2, $3, $4, 'USDT_ETH', 'ETH', $5, 'ETH', 'EXTERNAL', 'somebody', 'INTERNAL', $6, 'CONFIRMING', 'pending', '0xold', 1)`,
      [id, alice.workspace, alice.subAccount, alice.wallets['USDT_ETH'], amount, alice.deposit]
    )
    await old.query(
      `insert into deposits (transaction_id, network, txid, position, address, sender, block_height, block_hash)
       values ($1, 'ETH', '0xold', $2, $3, 'somebody', 1, $4)`,
      [id, position, alice.deposit, hash]
    )
  }
  await old.query(`insert into blocks (network, height, hash, parent) values ('ETH', 1, $1, '')`, [hash])
  await old.query(`update network_scans set height = 1`)
  await migrate(old)
  const listed = await old.query<{ handed_out: boolean; wallets: number }>(
    'select handed_out, count(distinct wallet_id)::int wallets from wallet_addresses group by handed_out order by handed_out'
  )
  assert.deepEqual(listed, [{ handed_out: false, wallets: world.assets.length }, { handed_out: true, wallets: 1 }], 'each wallet lists its omnibus address')
  assert.deepEqual(
    (await old.query<{ position: number; occurrence: number }>('select position, occurrence from deposits order by position')).map(
      ({ occurrence }) => occurrence
    ),
    [0, 1, 0]
  )
  world.chain.bury()
  await world.settle()
  assert.deepEqual(await world.books(alice), { USDT_ETH: '16' })
  world.chain.drop(DEPTH + 1)
  world.chain.mine({
    txid: '0xold',
    outcome: [
      { ...paid, position: 0, amount: 6n },
      { ...paid, position: 1 },
      { ...paid, position: 2 },
    ],
  })
  world.chain.bury()
  await world.settle()
  assert.deepEqual(await world.books(alice), { USDT_ETH: '16' })
  assert.deepEqual((await world.deposits()).map(({ id }) => id).sort(), ids.sort())
})
