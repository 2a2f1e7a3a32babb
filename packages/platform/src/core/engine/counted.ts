import type { Queryable } from '../database/pool.ts'
import { lockedBalance } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * Resource points that an account's own stake provides, while several transactions are pending.
 * Each transaction stores in its plan the points that it may use (`energy_counted`,
 * `bandwidth_counted`), because the chain assigns them to whichever transaction is executed first,
 * and the points by which its fuel was reduced (`…_spared`). Together they never rely on more
 * points than exist.
 */
interface Points {
  energy: bigint
  bandwidth: bigint
}
/** Points in use. `mark` changes whenever a transaction starts or stops counting on the stake. */
export interface OwnPoints extends Points {
  mark: string
}

export type CountedTransaction = Pick<
  TransactionRow,
  'id' | 'network' | 'source_id' | 'workspace_id' | 'fee_asset'
>

/** Returns the points of the account's own stake on which its other pending transactions count. */
export async function countedOn(database: Queryable, row: CountedTransaction): Promise<OwnPoints> {
  const rows = await database.query<{ id: string; energy: string; bandwidth: string }>(
    `select id, coalesce(plan->>'energy_counted', '0') energy, coalesce(plan->>'bandwidth_counted',
      '0') bandwidth from transactions
     where workspace_id = $4 and network = $1 and source_id = $2 and status = 'pending' and id <> $3
       and (plan ? 'energy_counted' or plan ? 'bandwidth_counted')
     order by id`,
    [row.network, row.source_id, row.id, row.workspace_id],
  )
  const sum = (name: 'energy' | 'bandwidth') =>
    rows.reduce((total, each) => total + BigInt(each[name]), 0n)
  return {
    energy: sum('energy'),
    bandwidth: sum('bandwidth'),
    mark: rows.map(({ id, energy, bandwidth }) => `${id} ${energy} ${bandwidth}`).join(),
  }
}

/**
 * Prevents other transactions of the account from counting on its stake until the database
 * transaction ends.
 */
export async function lockCounting(
  tx: Queryable,
  row: Pick<TransactionRow, 'workspace_id' | 'fee_asset' | 'source_id'>,
): Promise<void> {
  await lockedBalance(tx, {
    workspace: row.workspace_id,
    asset: row.fee_asset,
    kind: 'float',
    address: row.source_id,
  })
}

/**
 * Whether the same transactions count on the account's stake as when this one was planned. Call it
 * under {@link lockCounting}.
 */
export async function stillCounts(
  tx: Queryable,
  row: CountedTransaction,
  mark: string,
): Promise<boolean> {
  return (await countedOn(tx, row)).mark === mark
}

/**
 * Whether a pending transfer with reduced fuel relies on the resource that an unstake removes.
 * Transfers planned later do not rely on it.
 */
export async function othersRely(
  database: Queryable,
  row: CountedTransaction,
  resource: string | null,
): Promise<boolean> {
  const match = await database.one(
    `select 1 from transactions
     where workspace_id = $5 and network = $1 and source_id = $2 and status = 'pending' and id <> $3
       and coalesce(plan->>$4, '0') <> '0' limit 1`,
    [
      row.network,
      row.source_id,
      row.id,
      `${(resource ?? '').toLowerCase()}_spared`,
      row.workspace_id,
    ],
  )
  return match !== undefined
}
