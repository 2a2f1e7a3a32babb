import { traitsOf, type Network, type Registry } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'

/**
 * Returns the expected balance of each address of an account-based network, by address and asset,
 * in the smallest unit. It includes deposits that the scanner has seen, and the effects of our own
 * transactions in blocks that are not deep enough to be booked.
 * @param only restricts the result to one workspace id and one asset; entries of others are
 *   incomplete
 */
export async function expectedBalances(
  database: Queryable,
  registry: Registry,
  network: Network,
  only: { workspace: string; asset: string } | null = null,
): Promise<Map<string, bigint>> {
  const workspace = only?.workspace ?? null
  const assets =
    only === null ? registry.assetsOf(network.code).map((asset) => asset.asset_name) : [only.asset]
  const expected = new Map<string, bigint>()
  const add = (address: string | null, asset: string, amount: bigint) => {
    if (address !== null)
      expected.set(`${address} ${asset}`, (expected.get(`${address} ${asset}`) ?? 0n) + amount)
  }
  const accounts = await database.query<{ address: string | null; asset: string; balance: string }>(
    `select case when a.kind in ('available', 'reserved', 'written_off') then o.address when a.kind in ('tank',
      'tank_reserved') then g.address else a.address end address, a.asset,
        sum(a.balance)::text balance
     from ledger_accounts a
     left join wallets w on w.workspace_id = a.workspace_id and w.id = a.wallet_id
     left join chain_addresses o on o.workspace_id = a.workspace_id and o.network = $1
       and o.sub_account_id = w.sub_account_id
       and o.kind = 'omnibus'
     left join gas_tanks g on g.network = $1 and g.workspace_id = a.workspace_id
     where a.asset = any($2) and ($3::uuid is null or a.workspace_id = $3) and a.kind in (
       'available', 'reserved', 'unswept', 'frozen', 'float', 'float_reserved', 'suspense', 'tank',
         'tank_reserved', 'written_off'
     ) group by 1, 2`,
    [network.code, assets, workspace],
  )
  for (const row of accounts) add(row.address, row.asset, BigInt(row.balance))
  await addUnbooked(database, network, { workspace, height: null }, add)
  return expected
}

/**
 * Adds what blocks have changed at our addresses and no entry of the ledger contains yet: the effects of
 * our own transactions, and deposits that are not deep enough.
 * @param o.workspace id; null: all workspaces
 * @param o.height highest block that counts; null: all that were read
 */
export async function addUnbooked(
  database: Queryable,
  network: Network,
  { workspace, height }: { workspace: string | null; height: number | null },
  add: (address: string | null, asset: string, amount: bigint) => void,
): Promise<void> {
  for (const row of await includedTransactions(database, network, workspace, height)) {
    // Of the staking calls, only freezing reduces the balance, and withdrawn stake increases it.
    if (row.succeeded) {
      add(
        row.source_id,
        row.asset,
        row.step === null || row.step === 'freeze' ? -BigInt(row.amount) : BigInt(row.withdrawn),
      )
    }
    if (row.succeeded && (row.kind === 'SWEEP' || row.kind === 'FUEL'))
      add(row.destination_id, row.asset, BigInt(row.amount))
    add(
      row.kind === 'SWEEP' && row.receiver_pays ? row.destination_id : row.source_id,
      row.fee_asset,
      -BigInt(row.fee),
    )
  }
  const arriving = await database.query<{ destination_id: string; asset: string; amount: string }>(
    `select t.destination_id, t.asset, t.amount::text from transactions t
       join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
      where t.network = $1 and t.state in ('CONFIRMING', 'SCREENING')
        and not t.plan ? 'frozen_wallet' and t.kind in ('DEPOSIT',
      'TANK_DEPOSIT') and d.block_height is not null and t.status = 'pending'
        and ($2::uuid is null or t.workspace_id = $2)
        and ($3::bigint is null or d.block_height <= $3)`,
    [network.code, workspace, height],
  )
  for (const row of arriving) add(row.destination_id, row.asset, BigInt(row.amount))
}

/** One of our own transactions in a block, with amounts in the smallest unit. */
interface IncludedTransaction {
  step: string | null
  withdrawn: string
  kind: string
  asset: string
  fee_asset: string
  amount: string
  source_id: string
  destination_id: string
  fee: string
  succeeded: boolean
  receiver_pays: boolean
}

/**
 * Reads our own transactions that are included on the chain but not booked yet. Fuel is booked with
 * its block, unless transactions of the chain can expire.
 */
async function includedTransactions(
  database: Queryable,
  network: Network,
  workspace: string | null,
  height: number | null,
): Promise<IncludedTransaction[]> {
  return database.query<IncludedTransaction>(
    `select c.step, coalesce(c.withdrawn, 0)::text withdrawn, t.plan ? 'fee_wallet' receiver_pays,
      t.kind, t.asset, t.fee_asset,
      t.amount::text, t.source_id, t.destination_id, coalesce(c.fee, 0)::text fee, c.succeeded
     from chain_transactions c join transactions t on t.workspace_id = c.workspace_id
       and t.id = c.transaction_id
     where c.network = $1 and c.state = 'INCLUDED' and (t.kind <> 'FUEL' or $2)
       and ($3::uuid is null or c.workspace_id = $3)
       and ($4::bigint is null or c.block_height <= $4)`,
    [network.code, traitsOf(network).nothingExcludes === true, workspace, height],
  )
}
