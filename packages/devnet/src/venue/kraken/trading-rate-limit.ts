import type { Order } from '../engine/types.ts'
import type { ApiKey } from '../venue.ts'
import { KrakenError } from './answer.ts'

/** Limits of an account in one pair: maximum counter value, and decrease per second. */
const PAIR_MAX = 180
const DECAY_PER_SECOND = 3.75
/** Cost of cancelling an order, by its maximum age in seconds. */
const YOUNG: readonly (readonly [seconds: number, cost: number])[] = [
  [5, 8],
  [10, 6],
  [15, 5],
  [45, 4],
  [90, 2],
  [300, 1],
]

/**
 * Counter of each account and pair, which increases most if an order is cancelled soon after it was
 * placed.
 */
export class TradingRateLimit {
  readonly #counters = new Map<string, { value: number; atMs: number }>()

  /**
   * Counts a new order.
   * @throws KrakenError if the limit is exceeded
   */
  order(key: ApiKey, market: string): void {
    this.#add(key, market, 1)
  }

  /**
   * Counts a cancellation.
   * @throws KrakenError if the limit is exceeded
   */
  cancel(key: ApiKey, { market, openedMs }: Order): void {
    const age = (Date.now() - openedMs) / 1000
    this.#add(key, market, YOUNG.find(([under]) => age < under)?.[1] ?? 0)
  }

  #add(key: ApiKey, market: string, cost: number): void {
    if (key.isUnlimited) return
    const name = `${key.account} ${market}`
    const { value, atMs } = this.#counters.get(name) ?? { value: 0, atMs: Date.now() }
    const now = Math.max(0, value - ((Date.now() - atMs) / 1000) * DECAY_PER_SECOND)
    if (now + cost > PAIR_MAX) throw new KrakenError('EOrder:Rate limit exceeded')
    this.#counters.set(name, { value: now + cost, atMs: Date.now() })
  }
}
