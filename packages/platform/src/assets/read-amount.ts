import { ChainError, formatAmount, parseAmount, type Asset } from '@custody/chains'
import { ApiError } from '../errors.ts'

/** No chain has more of anything. */
const AMOUNT_MAX = (1n << 128n) - 1n

/**
 * An amount of an asset in its smallest unit. @throws ApiError `INVALID_AMOUNT` that names the
 * field
 */
export function readAmount(
  text: string,
  asset: Asset,
  field: string,
  most: bigint = AMOUNT_MAX,
): bigint {
  const refused = (reason: string) =>
    new ApiError('INVALID_AMOUNT', `${field}: ${reason}`, { field })
  let amount: bigint
  try {
    amount = parseAmount(text, asset.decimals)
  } catch (error) {
    throw error instanceof ChainError ? refused(error.message) : error
  }
  if (amount > most)
    throw refused(`must be at most ${formatAmount(most, asset.decimals)} ${asset.asset_name}`)
  return amount
}
