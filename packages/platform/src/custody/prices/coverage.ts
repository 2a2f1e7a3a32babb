import type { Asset, Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Networks } from '../../core/engine/networks.ts'
import type { Prices } from './prices.ts'
import { STALE_MS } from './consensus-price.ts'
import { coinOf } from './coins.ts'
import type { PriceSource } from './source.ts'

interface Services {
  registry: Registry
  networks: Networks
  prices: Prices
}

/**
 * Returns the coins of the assets that an installation transacts: those of its networks, without
 * retired assets.
 */
export function coinsInUse(
  registry: Registry,
  isConfigured: (network: string) => boolean,
): string[] {
  const isUsed = ({ network, status }: Asset) => isConfigured(network) && status !== 'retired'
  return [...new Set(registry.assets.filter(isUsed).map(coinOf))]
}

/** Returns the coins in use without a price that is recent enough to charge fees. */
export function unpricedCoins({ registry, networks, prices }: Services): string[] {
  return coinsInUse(registry, (network) => networks.has(network)).filter(
    (coin) => prices.price(coin)?.stale ?? true,
  )
}

export interface PriceDiagnosis {
  /** Sources that did not respond, and why. */
  failed: { source: string; reason: string }[]
  /** Coins for which no source has a price. */
  missing: string[]
  /** Coins whose latest price is too old to charge fees, and the time of that price. */
  stale: { coin: string; at: number }[]
  /** Names of the sources that were queried. The name is part of the JSON output of `doctor`. */
  asked: string[]
}

/**
 * Queries each source once for all coins.
 * @param clock returns the current time in milliseconds since the Unix epoch
 */
export async function diagnosePrices(
  sources: readonly PriceSource[],
  coins: readonly string[],
  clock: () => number = Date.now,
): Promise<PriceDiagnosis> {
  const failed: PriceDiagnosis['failed'] = []
  const newest = new Map<string, number>()
  if (coins.length > 0)
    await Promise.all(
      sources.map(async (source) => {
        try {
          for (const { coin, at } of await source.quotes(coins))
            newest.set(coin, Math.max(at, newest.get(coin) ?? -Infinity))
        } catch (error) {
          failed.push({ source: source.name, reason: reasonOf(error) })
        }
      }),
    )
  const nowMs = clock()
  const stale = [...newest]
    .filter(([, at]) => nowMs - at > STALE_MS)
    .map(([coin, at]) => ({ coin, at }))
  return {
    failed,
    missing: coins.filter((coin) => !newest.has(coin)),
    stale,
    asked: sources.map(({ name }) => name),
  }
}

/** Returns one line for each source that failed and each coin without a price. */
export function priceLines({ failed, missing, stale, asked: sources }: PriceDiagnosis): string[] {
  return [
    ...failed.map(({ source, reason }) => `prices  ${source} ${reason}`),
    // A coin id can only be wrong if a source responded.
    ...(missing.length > 0 && failed.length === sources.length
      ? [
          `prices  no source responds, so there is no price of ${missing.join(', ')}: check the network and the sources named above`,
        ]
      : missing.map(
          (coin) =>
            `prices  no source (${sources.join(', ')}) has a price of ${coin}: correct its name by CUSTODY_COINGECKO_IDS, ` +
            'add an exchange to CUSTODY_PRICE_EXCHANGES, or set a fixed fee by CUSTODY_FEES_WITHOUT_PRICE',
        )),
    ...stale.map(
      ({ coin, at }) =>
        `prices  the newest price of ${coin} is of ${new Date(at).toISOString()}, too old for charging fees: check this machine’s clock and the sources, or add an exchange to CUSTODY_PRICE_EXCHANGES`,
    ),
  ]
}
