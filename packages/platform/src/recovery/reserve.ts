import type { Queryable } from '../database/pool.ts'
import { post } from '../ledger/post.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { reserveStake } from './stake-steps.ts'

/** Below zero for as long as the deposits that it was paid from are not found again. */
const OVERDRAW = { overdraw: true }

/** Holds in the books what an ordinary transaction holds once it is signed; its booking takes it from there. */
export async function reserve(tx: Queryable, row: TransactionRow, fee: bigint): Promise<void> {
  const wallet = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const amount = BigInt(row.amount)
  if (row.kind === 'WITHDRAWAL') {
    const total = amount + BigInt(row.plan.fee_reserve ?? '0')
    await post(
      tx,
      'reserve',
      row.id,
      [
        { ...wallet, kind: 'available', amount: -total },
        { ...wallet, kind: 'reserved', amount: total },
      ],
      OVERDRAW,
    )
  }
  if (row.plan.fee_wallet !== undefined) await holdFee(tx, row, row.plan.fee_wallet, fee)
  if (row.plan.adopted_steps !== undefined) await reserveStake(tx, row, fee)
  const tank = { workspace: row.workspace_id, asset: row.asset }
  if (row.kind === 'DRAIN')
    await post(
      tx,
      'drain-reserve',
      row.id,
      [
        { ...tank, kind: 'tank', amount: -amount - fee },
        { ...tank, kind: 'tank_reserved', amount: amount + fee },
      ],
      OVERDRAW,
    )
  if (row.kind === 'FUEL') {
    await post(
      tx,
      'fuel-reserve',
      row.id,
      [
        { ...tank, kind: 'tank', amount: -amount - fee },
        { ...tank, kind: 'tank_reserved', amount: amount + fee },
      ],
      OVERDRAW,
    )
    // Nothing waits for it here: what arrives is float, and what it was for pays its fee out of that.
    const address = { ...tank, address: row.destination_id }
    await post(
      tx,
      'float-release',
      row.id,
      [
        { ...address, kind: 'float_reserved', amount: -amount },
        { ...address, kind: 'float', amount },
      ],
      OVERDRAW,
    )
  }
}

async function holdFee(tx: Queryable, row: TransactionRow, feeWallet: string, fee: bigint): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: feeWallet, asset: row.fee_asset }
  await post(
    tx,
    'reserve-adjust',
    `adopted ${row.id}`,
    [
      { ...account, kind: 'available', amount: -fee },
      { ...account, kind: 'reserved', amount: fee },
    ],
    OVERDRAW,
  )
}

/** A known transfer of a token whose fee another wallet pays, and which had not been built. */
export async function lendFeeWallet(tx: Queryable, row: TransactionRow, feeWallet: string, fee: bigint): Promise<void> {
  await holdFee(tx, row, feeWallet, fee)
  await tx.query(`update transactions set plan = plan || jsonb_build_object('fee_wallet', $2::text, 'fee_held', $3::text) where id = $1`, [
    row.id,
    feeWallet,
    fee.toString(),
  ])
}
