import type { Asset, Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Services } from '../engine/services.ts'
import { coinOf } from './coins.ts'
import type { PriceSource } from './source.ts'

/** Coins of the assets that an installation transacts: those of its networks, without retired assets. */
export function coinsInUse(registry: Registry, isConfigured: (network: string) => boolean): string[] {
  const isUsed = ({ network, status }: Asset) => isConfigured(network) && status !== 'retired'
  return [...new Set(registry.assets.filter(isUsed).map(coinOf))]
}

/** Coins in use that have no price, or none that is young enough to charge by. */
export function unpricedCoins({ registry, networks, prices }: Pick<Services, 'registry' | 'networks' | 'prices'>): string[] {
  return coinsInUse(registry, (network) => networks.has(network)).filter((coin) => prices.price(coin)?.stale ?? true)
}

export interface PriceDiagnosis {
  /** Sources that did not answer, and why. */
  failed: { source: string; reason: string }[]
  /** Coins of which no source has a price. */
  missing: string[]
  /** Names of all sources. */
  asked: string[]
}

/** Asks each source once for each coin. */
export async function diagnosePrices(sources: readonly PriceSource[], coins: readonly string[]): Promise<PriceDiagnosis> {
  const failed: PriceDiagnosis['failed'] = []
  const priced = new Set<string>()
  if (coins.length > 0) await Promise.all(sources.map(async (source) => {
    try {
      for (const { coin } of await source.quotes(coins)) priced.add(coin)
    } catch (error) {
      failed.push({ source: source.name, reason: reasonOf(error) })
    }
  }))
  return { failed, missing: coins.filter((coin) => !priced.has(coin)), asked: sources.map(({ name }) => name) }
}

/** One line for each source that failed and each coin without a price. */
export function priceLines({ failed, missing, asked }: PriceDiagnosis): string[] {
  return [
    ...failed.map(({ source, reason }) => `prices  ${source} ${reason}`),
    ...missing.map((coin) => `prices  no source (${asked.join(', ')}) has a price of ${coin}: correct its name by CUSTODY_COINGECKO_IDS, `
      + 'add an exchange to CUSTODY_PRICE_EXCHANGES, or set a fixed fee by CUSTODY_FEES_WITHOUT_PRICE'),
  ]
}
