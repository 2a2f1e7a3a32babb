import { formatAmount, parseAmount } from '@custody/chains/basics'
import { JsonNumber } from '@custody/request-auth'

/**
 * Exact decimal as a JSON number for a response. A caller's own may begin with zeros, which no JSON
 * number does.
 */
export function exact(decimalText: string): JsonNumber {
  return new JsonNumber(decimalText.replace(/^0+(?=\d)/, ''))
}

/** USD is kept in millionths. */
export const USD_DECIMALS = 6

export const parseUsd = (text: string): bigint => parseAmount(text, USD_DECIMALS)
export const showUsd = (micro: bigint): string => formatAmount(micro, USD_DECIMALS)
export const exactUsd = (micro: bigint): JsonNumber => exact(showUsd(micro))
