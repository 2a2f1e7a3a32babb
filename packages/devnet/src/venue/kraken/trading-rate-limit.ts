import type { Order } from '../engine/types.ts'
import type { ApiKey } from '../venue.ts'
import { KrakenError } from './answer.ts'

/** What an account may do in one pair: so much at once, and so much a second in the long run. */
const PAIR_MAX = 180
const DECAY_PER_SECOND = 3.75
/** What cancelling an order costs that is younger than so many seconds. */
const YOUNG: readonly (readonly [seconds: number, cost: number])[] = [
  [5, 8],
  [10, 6],
  [15, 5],
  [45, 4],
  [90, 2],
  [300, 1],
]

/**
 * The counter of each account and pair, which rises most when an order is cancelled that was just
 * placed.
 */
export class TradingRateLimit {
  readonly #counters = new Map<string, { value: number; atMs: number }>()

  /** @throws KrakenError */
  order(key: ApiKey, market: string): void {
    this.#add(key, market, 1)
  }

  /** @throws KrakenError */
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
