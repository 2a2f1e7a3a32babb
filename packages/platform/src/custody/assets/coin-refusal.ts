import { CoinRefusal, formatAmount, type Asset } from '@custody/chains'
import { exact } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'

/**
 * Returns the error of a request whose payment cannot be made from the wallet's coins in one
 * transaction; any other error unchanged. A lack of coins is not one of them: the wallet's balance
 * decides that.
 */
export function asRequestError(error: unknown, asset: Asset): unknown {
  if (!(error instanceof CoinRefusal)) return error
  const shown = formatAmount(error.most, asset.decimals)
  return new ApiError(
    'CONSOLIDATE_FIRST',
    `amount: ${error.message}; one transfer can pay up to ${shown} ${asset.asset_name} now`,
    { field: 'amount', details: { max_spendable: exact(shown) } },
  )
}
