import type { Asset } from '@custody/chains'
import type { Services } from '../engine/services.ts'
import { coinOf } from './coins.ts'
import { usdValue } from './decimals.ts'

/** Values above it have more digits than the database holds. */
const VALUE_MAX = 10n ** 78n - 1n

/**
 * Value of an amount (smallest unit) in millionths of a USD, at the price that is in memory now.
 * Asks no source and never fails.
 * @returns null without a current price, or where the value has more than 78 digits
 */
export function valueNow(
  { prices }: Pick<Services, 'prices'>,
  asset: Asset,
  amount: bigint,
): bigint | null {
  const price = prices.price(coinOf(asset))
  if (!price || price.stale) return null
  const value = usdValue(amount, asset.decimals, price.price)
  return value > VALUE_MAX ? null : value
}
