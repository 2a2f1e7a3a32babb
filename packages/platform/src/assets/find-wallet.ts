import { ApiError } from '../errors.ts'
import type { Queryable } from '../database/pool.ts'

/** A row of `wallets`. */
export interface WalletRow { id: string; asset: string; status: string; created_at: Date; network: string }

/** The wallet of an asset in a sub-account, and the workspace's fee tier. Throws ApiError `WALLET_MISSING`. */
export async function findWallet(
  database: Queryable, subAccountId: string, asset: string
): Promise<WalletRow & { prepaid_tier: string | null }> {
  const row = await database.one<WalletRow & { prepaid_tier: string | null }>(
    `select w.id, w.asset, w.status, w.created_at, w.network, p.tier prepaid_tier
     from wallets w left join prepaid_accounts p on p.workspace_id = w.workspace_id
     where w.sub_account_id = $1 and w.asset = $2`, [subAccountId, asset])
  if (!row) {
    throw new ApiError(
      'WALLET_MISSING', `asset: there is no ${asset} wallet in this sub-account; create it with POST /dac/v1/create-wallet`,
      { field: 'asset' }
    )
  }
  return row
}
