import { ApiError } from '../errors.ts'
import type { Queryable } from '../database/pool.ts'
import type { WalletRow } from './present.ts'

/** The wallet of an asset in a sub-account. Throws ApiError `WALLET_MISSING`. */
export async function findWallet(database: Queryable, subAccountId: string, asset: string): Promise<WalletRow> {
  const row = await database.one<WalletRow>('select id, asset, status, created_at, network from wallets where sub_account_id = $1 and asset = $2', [subAccountId, asset])
  if (!row) throw new ApiError('WALLET_MISSING', `asset: there is no ${asset} wallet in this sub-account; create it with POST /dac/v1/create-wallet`, { field: 'asset' })
  return row
}
