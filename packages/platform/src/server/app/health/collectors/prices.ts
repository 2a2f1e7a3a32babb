import type { Registry } from '@custody/chains'
import type { Networks } from '../../../../core/engine/networks.ts'
import type { Metrics } from '../../../../core/metrics.ts'
import type { Prices } from '../../../../custody/prices/prices.ts'
import { unpricedCoins } from '../../../../custody/prices/coverage.ts'

interface Services {
  registry: Registry
  networks: Networks
  metrics: Metrics
  prices: Prices
}

/**
 * Reports coins whose transfers are refused, or charged a fixed fee, because no source has a
 * current price.
 */
export async function collectPrices(services: Services): Promise<void> {
  services.metrics.priceMissing.reset()
  for (const coin of unpricedCoins(services)) services.metrics.priceMissing.labels(coin).set(1)
}
