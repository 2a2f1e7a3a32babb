import type { Queryable } from '../database/pool.ts'
import { lockedBalance } from '../ledger/post.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * What an account's own stake pays for, while several transactions are under way. Each notes in its
 * plan the points that it may use (`energy_counted`, `bandwidth_counted`), for the chain gives them
 * to whichever comes first; and those by which its own fuel was made smaller (`…_spared`). Together
 * they never rely on more than there is.
 */
interface Points {
  energy: bigint
  bandwidth: bigint
}
/** `mark` changes with every transaction that begins or ends to count. */
export interface OwnPoints extends Points {
  mark: string
}

export type Place = Pick<
  TransactionRow,
  'id' | 'network' | 'source_id' | 'workspace_id' | 'fee_asset'
>

/** Points of the account's own stake that its other transactions under way count on. */
export async function countedOn(database: Queryable, row: Place): Promise<OwnPoints> {
  const rows = await database.query<{ id: string; energy: string; bandwidth: string }>(
    `select id, coalesce(plan->>'energy_counted', '0') energy, coalesce(plan->>'bandwidth_counted', '0') bandwidth from transactions
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
 * Keeps other transactions of the account from counting on its stake until the database transaction
 * ends.
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
 * Under {@link lockCounting}: whether the same transactions count on the account's stake as when
 * this one was planned.
 */
export async function stillCounts(tx: Queryable, row: Place, mark: string): Promise<boolean> {
  return (await countedOn(tx, row)).mark === mark
}

/**
 * Whether a transfer whose fuel was made smaller relies on the resource that an unstake takes away;
 * later ones do not.
 */
export async function othersRely(
  database: Queryable,
  row: Place,
  resource: string | null,
): Promise<boolean> {
  const found = await database.one(
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
  return found !== undefined
}
