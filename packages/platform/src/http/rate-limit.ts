/** Requests left in a one-minute window, and when it ends (milliseconds since the Unix Epoch). */
export interface RateState { remaining: number; reset: number }

const WINDOW_MS = 60_000
const ADDRESSES_MAX = 50_000

/** The full minute that holds `now`. */
export function windowOf(now: number): { start: number; end: number } {
  const start = Math.floor(now / WINDOW_MS) * WINDOW_MS
  return { start, end: start + WINDOW_MS }
}

/** Counts requests without a valid key by client address, in this process. */
export class AddressLimit {
  readonly #limit: number
  #window = 0
  readonly #counts = new Map<string, number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** `exceeded` where this request is beyond the allowance. */
  count(address: string, now: number): RateState & { exceeded: boolean } {
    const window = windowOf(now)
    if (window.start !== this.#window || this.#counts.size > ADDRESSES_MAX) {
      this.#counts.clear()
      this.#window = window.start
    }
    const requests = (this.#counts.get(address) ?? 0) + 1
    this.#counts.set(address, requests)
    return { remaining: Math.max(0, this.#limit - requests), reset: window.end, exceeded: requests > this.#limit }
  }
}
