/** Requests left in a one-minute window, and when it ends (milliseconds since the Unix Epoch). */
export interface RateState {
  remaining: number
  reset: number
}

const WINDOW_MS = 60_000
const ADDRESSES_MAX = 50_000

/** The full minute that holds `now`. */
export function windowOf(now: number): { start: number; end: number } {
  const start = Math.floor(now / WINDOW_MS) * WINDOW_MS
  return { start, end: start + WINDOW_MS }
}

/** The end of the window that was told last: all who ask within one minute are told the same. */
let told = { reset: Number.NaN, text: '' }

/** The headers that every response carries; both spellings of the document. */
export function rateHeaders({ remaining, reset }: RateState): Record<string, string> {
  if (told.reset !== reset) told = { reset, text: new Date(reset).toISOString() }
  return {
    'x-rate-limit-remaining': String(remaining),
    'x-rate-limit-limit': '1m',
    'x-ratelimit-limit': '1m',
    'x-rate-limit-reset': told.text,
  }
}

/** Counts requests by client address, in this process. */
export class AddressLimit {
  readonly #limit: number
  #window = 0
  readonly #counts = new Map<string, number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** `exceeded` where this request is beyond the allowance. */
  count(address: string, now: number): RateState & { exceeded: boolean } {
    this.#turn(now)
    const requests = (this.#counts.get(address) ?? 0) + 1
    this.#counts.set(address, requests)
    return { ...this.look(address, now), exceeded: requests > this.#limit }
  }

  /** What an address has left; costs it nothing. */
  look(address: string, now: number): RateState {
    this.#turn(now)
    return { remaining: Math.max(0, this.#limit - (this.#counts.get(address) ?? 0)), reset: windowOf(now).end }
  }

  #turn(now: number): void {
    const { start } = windowOf(now)
    if (start === this.#window && this.#counts.size <= ADDRESSES_MAX) return
    this.#counts.clear()
    this.#window = start
  }
}

/** Allowances of a client address, apart from each other: whoever reads open endpoints may still mistype a key. */
export class AddressLimits {
  /** Requests that never reached a caller: refused before routing, no such path, failed authentication. */
  readonly strangers: AddressLimit
  /** Endpoints that need no key. */
  readonly open: AddressLimit

  constructor(limit: number) {
    this.strangers = new AddressLimit(limit)
    this.open = new AddressLimit(limit)
  }
}
