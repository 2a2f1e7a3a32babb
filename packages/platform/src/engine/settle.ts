import { stringifyJson } from '@custody/request-auth'
import { forwardDone, returnForward } from '../auto-forwarding/outcome.ts'
import { queueSweep } from '../deposits/sweeps.ts'
import type { Queryable } from '../database/pool.ts'
import { emit, post, type Posting } from '../ledger/post.ts'
import { takeEnergyBack } from '../gas-tanks/lend.ts'
import { traitsOf } from './traits.ts'
import type { Services } from './services.ts'
import { advance } from './lease.ts'
import { presentTransaction } from '../transactions/present.ts'
import type { TransactionRow } from './transaction.ts'
import type { Attempt } from './attempts.ts'

/** What the fuel of a transfer leaves at its address goes from reserved to float, less the fee that was paid. */
export function floatPostings(row: TransactionRow, held: bigint, fee: bigint): Posting[] {
  const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
  return [
    { ...scope, kind: 'float_reserved', amount: -held },
    { ...scope, kind: 'float', amount: held - fee },
    { workspace: row.workspace_id, asset: row.fee_asset, kind: 'chain', amount: fee },
  ]
}

/** Tron gives staked energy to whichever transaction comes first: one may have paid what was held for another, and the address owes it until that one is booked. */
export const overdraws = (held: bigint, fee: bigint): { overdraw: boolean } => ({ overdraw: fee > held })

/** Fuel is booked when it is in a block, for the transfer waits for it and its bytes stay valid if the block goes; where they may die (Tron), when it is final. */
export async function settleFuel(tx: Queryable, row: TransactionRow, chain: Pick<Attempt, 'fee_max'>, fee: bigint, succeeded: boolean): Promise<void> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  const fuel = BigInt(row.amount)
  // With the fee of the chain below, which the transaction itself does not name.
  const reserved = fuel + BigInt(row.plan['need'] ?? chain.fee_max)
  const moved = succeeded ? fuel : 0n
  const done = await post(tx, 'fuel', row.id, [
    { ...scope, kind: 'tank_reserved', amount: -reserved },
    { ...scope, kind: 'float_reserved', address: row.destination_id, amount: moved },
    { ...scope, kind: 'chain', amount: fee },
    { ...scope, kind: 'tank', amount: reserved - moved - fee },
  ])
  if (!done) return
  if (succeeded) await tx.query(`update transactions set plan = plan || '{"settled":"1"}' where id = $1`, [row.id])
  await tx.query(`update transactions set next_run_at = $2 where id = $1 and lease_token is null`, [row.parent_id, tx.now()])
}

/** A sweep that pays for itself, out of what it moves or (of a token) from another wallet of the sub-account. */
async function settleOwnSweep(tx: Queryable, row: TransactionRow, o: { fee: bigint; succeeded: boolean }): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const moved = o.succeeded ? BigInt(row.amount) : 0n
  const feeAccount = { workspace: row.workspace_id, wallet: row.plan['fee_wallet'] ?? null, asset: row.fee_asset }
  const feeHeld = BigInt(row.plan['fee_held'] ?? '0')
  await post(tx, 'settle', row.id, [
    { ...account, kind: 'unswept', address: row.source_id, amount: -moved - (row.plan['fee_wallet'] === undefined ? o.fee : 0n) },
    { ...account, kind: 'available', amount: moved },
    { ...feeAccount, wallet: null, kind: 'chain', amount: o.fee },
    ...(row.plan['fee_wallet'] === undefined ? [] : [{ ...feeAccount, kind: 'reserved' as const, amount: -feeHeld }, { ...feeAccount, kind: 'available' as const, amount: feeHeld - o.fee }]),
    // Tron: where another transaction took the free bandwidth first, more was paid than was kept back.
  ], overdraws(BigInt(row.plan['need'] ?? o.fee), o.fee))
}

/** The final entry of a transaction, with its real fee, and its public end. */
export async function settle(services: Services, tx: Queryable, row: TransactionRow, o: { fee: bigint; succeeded: boolean; cancelled: boolean; confirmations: number }): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const amount = BigInt(row.amount)
  const { feesFrom } = traitsOf(services.networks.get(row.network).network)
  const held = BigInt(row.plan['need'] ?? '0')
  await (o.succeeded ? forwardDone(tx, row) : returnForward(tx, row, 'the chain reverted it'))
  switch (row.kind) {
    case 'WITHDRAWAL':
      if (row.plan['fee_wallet'] !== undefined) {
        // A token whose fee another wallet of the sub-account has paid.
        const feeAccount = { workspace: row.workspace_id, wallet: row.plan['fee_wallet'], asset: row.fee_asset }
        const feeHeld = BigInt(row.plan['fee_held'] ?? '0')
        await post(tx, 'settle', row.id, [
          { ...account, kind: 'reserved', amount: -amount },
          o.succeeded ? { ...account, wallet: null, kind: 'chain', amount } : { ...account, kind: 'available', amount },
          { ...feeAccount, kind: 'reserved', amount: -feeHeld },
          { ...feeAccount, wallet: null, kind: 'chain', amount: o.fee },
          { ...feeAccount, kind: 'available', amount: feeHeld - o.fee },
        ])
      } else if (feesFrom === 'wallet') {
        const moved = (o.succeeded ? amount : 0n) + o.fee
        const total = amount + BigInt(row.plan['fee_reserve'] ?? '0')
        await post(tx, 'settle', row.id, [
          { ...account, kind: 'reserved', amount: -total },
          { ...account, wallet: null, kind: 'chain', amount: moved },
          { ...account, kind: 'available', amount: total - moved },
        ])
      } else {
        await post(tx, 'settle', row.id, [
          { ...account, kind: 'reserved', amount: -amount },
          o.succeeded ? { ...account, wallet: null, kind: 'chain', amount } : { ...account, kind: 'available', amount },
          ...floatPostings(row, held, o.fee),
        ], overdraws(held, o.fee))
      }
      break
    case 'SWEEP':
      if (feesFrom === 'wallet' || row.plan['own'] === '1') await settleOwnSweep(tx, row, o)
      else await post(tx, 'settle', row.id, [
        ...(o.succeeded ? [{ ...account, kind: 'unswept' as const, address: row.source_id, amount: -amount }, { ...account, kind: 'available' as const, amount }] : []),
        ...floatPostings(row, held, o.fee),
      ], overdraws(held, o.fee))
      if (o.succeeded) {
        await tx.query(
          `update transactions set state = 'SWEPT', updated_at = $3
           where kind = 'DEPOSIT' and wallet_id = $1 and destination_id = $2 and state = 'CREDITED'`, [row.wallet_id, row.source_id, tx.now()])
      }
      break
    case 'DRAIN': {
      const reserved = amount + BigInt(row.plan['reserved_fee'] ?? '0')
      await post(tx, 'settle', row.id, [
        { workspace: row.workspace_id, asset: row.asset, kind: 'tank_reserved', amount: -reserved },
        { workspace: row.workspace_id, asset: row.asset, kind: 'chain', amount: (o.succeeded ? amount : 0n) + o.fee },
        { workspace: row.workspace_id, asset: row.asset, kind: 'tank', amount: reserved - (o.succeeded ? amount : 0n) - o.fee },
      ])
      break
    }
    case 'FUEL': // booked by settleFuel
      break
    default:
      throw new Error(`${row.kind} is not settled here`)
  }
  await takeEnergyBack(services, tx, row)
  const confirmedAt = new Date(services.environment.now())
  const outcome = o.succeeded
    ? { state: 'CONFIRMED', status: 'confirmed' as const, confirmed_at: confirmedAt }
    : o.cancelled
    ? { state: 'CANCELLED', status: 'failed' as const, failure_reason: 'it was cancelled; the amount is back, the network fee of the cancellation was spent' }
    : { state: 'REVERTED', status: 'failed' as const, failure_reason: 'the chain executed the transaction and reverted it; the amount is back, the network fee was spent' }
  await advance(tx, row, { ...outcome, ...(row.hash === null ? {} : { hash: row.hash }), fee: o.fee, confirmations: o.confirmations, last_error: null })
  if (row.kind === 'SWEEP') await queueSweep(tx, row)
  if (row.kind === 'WITHDRAWAL') {
    const shown = presentTransaction({ ...row, ...outcome, fee: o.fee.toString(), confirmations: o.confirmations, confirmed_at: o.succeeded ? confirmedAt : null, failure_reason: outcome.failure_reason ?? null }, services.registry)
    await emit(tx, row.workspace_id, row.sub_account_id, o.succeeded ? 'transaction.confirmed' : 'transaction.failed', stringifyJson(shown))
  }
}
