import { ChainError, formatAmount, parseAmount, type Asset } from '@custody/chains'
import { ApiError } from '../../core/errors.ts'

/** Maximum amount in the smallest unit; no chain has larger amounts. */
const AMOUNT_MAX = (1n << 128n) - 1n

/**
 * Parses an amount of an asset and returns it in the smallest unit.
 * @throws ApiError `INVALID_AMOUNT`, which names the field
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
