import type { Asset } from '@custody/chains'
import type { Prices } from './prices.ts'
import { coinOf } from './coins.ts'
import { usdValue } from './decimals.ts'

interface Services {
  prices: Prices
}

/** Maximum value; higher values have more digits than the database can store. */
const VALUE_MAX = 10n ** 78n - 1n

/**
 * Returns the value of an amount (smallest unit) in millionths of a US dollar, at the current price
 * in memory. Queries no source and never fails.
 * @returns null without a current price, or if the value has more than 78 digits
 */
export function valueNow({ prices }: Services, asset: Asset, amount: bigint): bigint | null {
  const price = prices.price(coinOf(asset))
  if (!price || price.stale) return null
  const value = usdValue(amount, asset.decimals, price.price)
  return value > VALUE_MAX ? null : value
}
