import type { Quote } from './source.ts'

/** Quotes of this age count as they are. */
export const FRESH_MS = 60_000
/** A price that is older is stale: nothing is created by it. */
export const STALE_MS = 300_000
/**
 * A quote that is this much further from the median than the others is left out, in basis points.
 */
const OUTLIER_BASIS_POINTS = 200n

export interface ConsensusPrice {
  price: bigint
  at: number
  sources: string[]
}

/**
 * The price that the sources agree on: the median of what is fresher than a minute, without what
 * lies more than 2 % off it. Where nothing is so fresh, of what is not yet stale; else of anything.
 * Null where nothing is left, as when two sources are far apart.
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
  const kept = used.filter(
    ({ price }) =>
      (price > middle ? price - middle : middle - price) * 10_000n <= middle * OUTLIER_BASIS_POINTS,
  )
  if (kept.length === 0) return null
  return {
    price: median(kept.map(({ price }) => price)),
    at: Math.min(now, Math.max(...kept.map(({ at }) => at))),
    sources: kept.map(({ source }) => source).sort(),
  }
}

function median(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  const half = sorted.length >> 1
  const upper = sorted[half] as bigint
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] as bigint) + upper) / 2n
}
