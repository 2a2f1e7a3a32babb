import type { Quote } from './source.ts'

/** Maximum age in milliseconds of a quote that counts as current. */
export const FRESH_MS = 60_000
/** Age in milliseconds above which a price is stale; no transaction is created with it. */
export const STALE_MS = 300_000
/** Maximum distance of a quote from the median in basis points; other quotes are ignored. */
const OUTLIER_BASIS_POINTS = 200n

export interface ConsensusPrice {
  price: bigint
  at: number
  sources: string[]
}

/**
 * Returns the price on which the sources agree: the median of quotes newer than one minute, without
 * those more than 2 % away from it. If no quote is that new, those that are not stale are used, or
 * else any. Null if nothing is left, for example when two sources are far apart.
 */
export function consensusPrice(
  quotes: readonly (Quote & { source: string })[],
  now: number,
): ConsensusPrice | null {
  const aged = (limit: number) =>
    quotes.filter(({ at }) => now - at <= limit && at <= now + FRESH_MS)
  const used = [FRESH_MS, STALE_MS, Infinity].map(aged).find(({ length }) => length > 0)
  if (!used) return null
  const middle = median(used.map(({ price }) => price))
  const stored = used.filter(
    ({ price }) =>
      (price > middle ? price - middle : middle - price) * 10_000n <= middle * OUTLIER_BASIS_POINTS,
  )
  if (stored.length === 0) return null
  return {
    price: median(stored.map(({ price }) => price)),
    at: Math.min(now, Math.max(...stored.map(({ at }) => at))),
    sources: stored.map(({ source }) => source).sort(),
  }
}

function median(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const half = sorted.length >> 1
  const upper = sorted[half] as bigint
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] as bigint) + upper) / 2n
}
