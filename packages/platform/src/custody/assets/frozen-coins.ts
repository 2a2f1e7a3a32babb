import { formatAmount, type Asset } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'

/**
 * Returns the part of a wallet's available balance that is in frozen coins, in the smallest unit. Coins
 * that a pending transfer spends, or that are not credited yet, are no part of it.
 */
export async function frozenOf(
  database: Queryable,
  workspaceId: string,
  walletId: string,
): Promise<bigint> {
  const row = await database.one<{ frozen: string }>(
    `select coalesce(sum(u.value), 0)::text frozen from coin_settings s
       join utxos u on u.workspace_id = s.workspace_id and u.network = s.network
         and u.txid = s.txid and u.vout = s.vout
     where s.workspace_id = $1 and s.frozen and u.wallet_id = $2 and u.spent_by is null
       and u.spendable`,
    [workspaceId, walletId],
  )
  return BigInt(row?.frozen ?? '0')
}

/**
 * Checks that a wallet can pay an amount and its network fee without its frozen coins. A wallet whose
 * balance is too low even with them is left to the ledger's check.
 * @param payment amounts in the smallest unit
 * @throws ApiError `INSUFFICIENT_BALANCE`
 */
export async function assertUnfrozen(
  database: Queryable,
  workspaceId: string,
  walletId: string,
  asset: Asset,
  { amount, reserve }: { amount: bigint; reserve: bigint },
): Promise<void> {
  const frozen = await frozenOf(database, workspaceId, walletId)
  if (frozen === 0n) return
  const row = await database.one<{ balance: string }>(
    `select balance::text from ledger_accounts where workspace_id = $1 and wallet_id = $2
       and asset = $3 and kind = 'available'`,
    [workspaceId, walletId, asset.asset_name],
  )
  const available = BigInt(row?.balance ?? '0')
  const needed = amount + reserve
  if (needed > available || needed <= available - frozen) return
  const show = (value: bigint) =>
    `${formatAmount(value < 0n ? 0n : value, asset.decimals)} ${asset.asset_name}`
  throw new ApiError(
    'INSUFFICIENT_BALANCE',
    `amount: ${show(amount)} plus a network fee of about ${show(reserve)} exceeds the ${show(available - frozen)} of the wallet that are not frozen; ${show(frozen)} are in frozen coins, see GET /dac/v1/coins`,
    { field: 'amount' },
  )
}
