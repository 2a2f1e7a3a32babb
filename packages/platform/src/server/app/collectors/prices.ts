import type { Services } from '../../../core/engine/services.ts'
import { unpricedCoins } from '../../../custody/prices/coverage.ts'

/**
 * Reports coins whose transfers are refused, or charged a fixed fee, because no source has a
 * current price.
 */
export async function collectPrices(services: Services): Promise<void> {
  services.metrics.priceMissing.reset()
  for (const coin of unpricedCoins(services)) services.metrics.priceMissing.labels(coin).set(1)
}
