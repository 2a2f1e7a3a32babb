import type { Queryable } from '../../core/database/pool.ts'
import { post } from '../../core/ledger/post.ts'
import { isConsolidation, type TransactionRow } from '../../core/engine/transaction.ts'
import { reserveStake } from './stake-steps.ts'

/**
 * Accounts may fall below zero here, until the deposits that funded the transaction are found
 * again.
 */
const OVERDRAW = { overdraw: true }

/**
 * Posts the reservations that an ordinary transaction has once it is signed; its booking uses them.
 */
export async function reserve(tx: Queryable, row: TransactionRow, fee: bigint): Promise<void> {
  const wallet = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const amount = BigInt(row.amount)
  if (row.kind === 'WITHDRAWAL' || isConsolidation(row)) {
    const total = (isConsolidation(row) ? 0n : amount) + BigInt(row.plan.fee_reserve ?? '0')
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
    // No transfer waits for adopted fuel: it is booked as float, from which its transfer pays the
    // fee.
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

async function holdFee(
  tx: Queryable,
  row: TransactionRow,
  feeWallet: string,
  fee: bigint,
): Promise<void> {
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

/**
 * Reserves the fee of a known token transfer in the wallet that pays it, if the transfer was not
 * built here before.
 */
export async function lendFeeWallet(
  tx: Queryable,
  row: TransactionRow,
  feeWallet: string,
  fee: bigint,
): Promise<void> {
  await holdFee(tx, row, feeWallet, fee)
  await tx.query(
    `update transactions set plan = plan || jsonb_build_object('fee_wallet', $2::text, 'fee_held',
      $3::text)
     where workspace_id = $4 and id = $1`,
    [row.id, feeWallet, fee.toString(), row.workspace_id],
  )
}
