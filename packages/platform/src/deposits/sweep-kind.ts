import type { Queryable } from '../database/pool.ts'
import { releaseOtherWallet } from '../engine/other-wallet.ts'
import type { Kind, Outcome, Services } from '../engine/services.ts'
import { endTransaction } from '../engine/settle.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { floatPostings, overdraws, releaseFloat } from '../gas-tanks/float.ts'
import { takeEnergyBack } from '../gas-tanks/lend.ts'
import { post } from '../ledger/post.ts'
import { sweepWaits } from './sweep-policy.ts'
import { queueSweep } from './sweeps.ts'

/** All that a deposit address holds of an asset, to the omnibus address. */
export const sweep: Kind<'SWEEP'> = {
  sweeps: true,
  postpones: sweepWaits,
  async purpose(services, row) {
    const address = await services.database.one<{ path_index: number; sub: number }>(
      `select c.path_index, s.path_index sub from chain_addresses c join sub_accounts s on s.id = c.sub_account_id
        where c.network = $1 and c.address = $2`,
      [row.network, row.source_id])
    if (!address) throw new Error('a sweep of an unknown address')
    return { kind: 'sweep', sub_account: address.sub, asset: row.asset, address_index: address.path_index }
  },
  async settle(services, tx, row, o) {
    await book(services, tx, row, o)
    if (o.succeeded) {
      await tx.query(
        `update transactions set state = 'SWEPT', updated_at = $3
         where kind = 'DEPOSIT' and wallet_id = $1 and destination_id = $2 and state = 'CREDITED'`,
        [row.wallet_id, row.source_id, tx.now()])
    }
    await takeEnergyBack(services, tx, row)
    await endTransaction(services, tx, row, o, false)
    await queueSweep(tx, row)
  },
  async release(services, tx, row) {
    await releaseOtherWallet(tx, row)
    await takeEnergyBack(services, tx, row)
    await releaseFloat(tx, row)
    return {}
  },
}

async function book(services: Services, tx: Queryable, row: TransactionRow, o: Outcome): Promise<void> {
  if (!services.networks.get(row.network).fuelled || row.plan.own === '1') return bookOwn(tx, row, o)
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const [amount, held] = [BigInt(row.amount), BigInt(row.plan.need ?? '0')]
  const moved = o.succeeded
    ? [
      { ...account, kind: 'unswept' as const, address: row.source_id, amount: -amount }, { ...account, kind: 'available' as const, amount },
    ]
    : []
  await post(tx, 'settle', row.id, [...moved, ...floatPostings(row, held, o.fee)], overdraws(held, o.fee))
}

/** A sweep that pays for itself, out of what it moves or (of a token) from another wallet of the sub-account. */
async function bookOwn(tx: Queryable, row: TransactionRow, o: Outcome): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const moved = o.succeeded ? BigInt(row.amount) : 0n
  const payer = row.plan.fee_wallet
  const feeAccount = { workspace: row.workspace_id, wallet: payer ?? null, asset: row.fee_asset }
  const held = BigInt(row.plan.fee_held ?? '0')
  await post(tx, 'settle', row.id, [
    { ...account, kind: 'unswept', address: row.source_id, amount: -moved - (payer === undefined ? o.fee : 0n) },
    { ...account, kind: 'available', amount: moved },
    { ...feeAccount, wallet: null, kind: 'chain', amount: o.fee },
    ...(payer === undefined ? [] : [
      { ...feeAccount, kind: 'reserved' as const, amount: -held }, { ...feeAccount, kind: 'available' as const, amount: held - o.fee },
    ]),
    // Tron: where another transaction took the free bandwidth first, more was paid than was kept back.
  ], overdraws(BigInt(row.plan.need ?? o.fee), o.fee))
}
