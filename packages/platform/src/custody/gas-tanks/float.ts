import type { Queryable } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { settlementReference } from '../../core/engine/settlement.ts'
import { post, type Posting } from '../../core/ledger/post.ts'

/**
 * Returns the postings of a transfer's fuel once its fee was paid: the rest moves from the
 * address's reserved float to its float.
 */
export function floatPostings(row: TransactionRow, held: bigint, fee: bigint): Posting[] {
  const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
  return [
    { ...scope, kind: 'float_reserved', amount: -held },
    { ...scope, kind: 'float', amount: held - fee },
    { workspace: row.workspace_id, asset: row.fee_asset, kind: 'chain', amount: fee },
  ]
}

/**
 * Whether a fee may overdraw its address's reserved float. Tron assigns staked energy to whichever
 * transaction is executed first, so a transaction may pay more than its reservation; the address's
 * balance is negative until the other transaction is booked.
 */
export const overdraws = (held: bigint, fee: bigint): { overdraw: boolean } => ({
  overdraw: fee > held,
})

/**
 * Returns the reference of the ledger entries of a transaction's float. Each time that a transaction
 * takes float again has entries of its own.
 */
export const floatReference = ({ id, plan }: Pick<TransactionRow, 'id' | 'plan'>): string =>
  plan.fuellings === undefined ? id : `${id}:${plan.fuellings}`

/**
 * Returns a transaction's reservation at its address to the float: the float that it took, and the
 * fuel that arrived for it.
 */
export async function releaseFloat(tx: Queryable, row: TransactionRow): Promise<void> {
  const fuel = row.plan.fuel_id
    ? await fuelOf(tx, row.workspace_id, row.plan.fuel_id, row.id)
    : undefined
  const came = fuel?.settled === '1' ? BigInt(fuel.amount) : 0n
  const held = BigInt(row.plan.float_taken ?? '0') + came - BigInt(row.plan.fees_paid ?? '0')
  const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
  await post(tx, 'float-release', settlementReference(row, floatReference(row)), [
    { ...scope, kind: 'float_reserved', amount: -held },
    { ...scope, kind: 'float', amount: held },
  ])
}

/**
 * A fuel transaction or an energy loan that a transfer waits for. `settled` is '1' once it is
 * booked.
 */
export interface Supply {
  status: string
  amount: string
  failure_reason: string | null
  settled: string | null
}

/**
 * Reads a fuel transaction or an energy loan.
 * @param forId the transfer, if several share the fuel; `amount` is then its part
 */
export async function fuelOf(
  database: Queryable,
  workspace: string,
  id: string,
  forId: string | null = null,
): Promise<Supply> {
  const fuel = await database.one<Supply>(
    `select status, failure_reason, plan->>'settled' settled, coalesce(
       (select p.amount from fuel_parts p where p.workspace_id = $3 and p.fuel_id = t.id
         and p.transaction_id = $2), amount)::text amount
     from transactions t where t.workspace_id = $3 and t.id = $1`,
    [id, forId, workspace],
  )
  if (!fuel) throw new Error('the fuel of this transfer is missing')
  return fuel
}
