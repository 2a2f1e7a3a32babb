import { formatAmount, parseAmount } from '@custody/chains/basics'
import { JsonNumber } from '@custody/request-auth'

/**
 * Returns an exact decimal as a JSON number for a response. Removes leading zeros, which callers
 * may send and JSON numbers cannot have.
 */
export function exact(decimalText: string): JsonNumber {
  return new JsonNumber(decimalText.replace(/^0+(?=\d)/, ''))
}

/** USD amounts are stored in millionths. */
export const USD_DECIMALS = 6

export const parseUsd = (text: string): bigint => parseAmount(text, USD_DECIMALS)
export const showUsd = (micro: bigint): string => formatAmount(micro, USD_DECIMALS)
export const exactUsd = (micro: bigint): JsonNumber => exact(showUsd(micro))
