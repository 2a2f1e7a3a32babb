import type { Queryable } from '../database/pool.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { post, type Posting } from '../ledger/post.ts'

/** What the fuel of a transfer leaves at its address goes from reserved to float, less the fee that was paid. */
export function floatPostings(row: TransactionRow, held: bigint, fee: bigint): Posting[] {
  const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
  return [
    { ...scope, kind: 'float_reserved', amount: -held },
    { ...scope, kind: 'float', amount: held - fee },
    { workspace: row.workspace_id, asset: row.fee_asset, kind: 'chain', amount: fee },
  ]
}

/**
 * Tron gives staked energy to whichever transaction comes first: one may have paid what was held for another, and the address owes it
 * until that one is booked.
 */
export const overdraws = (held: bigint, fee: bigint): { overdraw: boolean } => ({ overdraw: fee > held })

/** What was held at its address for a transaction that failed is float again: what was taken of that, and fuel that has come. */
export async function releaseFloat(tx: Queryable, row: TransactionRow): Promise<void> {
  const fuel = row.plan.fuel_id ? await fuelOf(tx, row.plan.fuel_id) : undefined
  const came = fuel?.settled === '1' ? BigInt(fuel.amount) : 0n
  const held = BigInt(row.plan.float_taken ?? '0') + came - BigInt(row.plan.fees_paid ?? '0')
  const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
  await post(tx, 'float-release', row.id, [{ ...scope, kind: 'float_reserved', amount: -held }, { ...scope, kind: 'float', amount: held }])
}

/** A fuel transaction or a loan, as the transfer sees it that waits for it. `settled` is '1' once the books know where it lies. */
export interface Supply { status: string; amount: string; failure_reason: string | null; settled: string | null }

export async function fuelOf(database: Queryable, id: string): Promise<Supply> {
  const fuel = await database.one<Supply>(
    `select status, amount::text, failure_reason, plan->>'settled' settled from transactions where id = $1`, [id])
  if (!fuel) throw new Error('fuel of this transfer is missing')
  return fuel
}
