import { createHash, randomBytes } from 'node:crypto'
import { clientNetworks } from './client-network.ts'

/** Requests left in a one-minute window, and when it ends (milliseconds since the Unix Epoch). */
export interface RateState {
  remaining: number
  reset: number
}

const WINDOW_MS = 60_000
const NAMES_MAX = 50_000
/** One for each value of two bytes. */
const SHARED_COUNTERS = 65_536
/** Limit of an IPv6 /48, as a multiple of that of a /64. */
export const SITE_FACTOR = 16

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

/**
 * Requests of each name in one window. A count is never below the requests that were made, however
 * many names there are.
 */
class WindowCounts {
  readonly #namesMax: number
  readonly #counts = new Map<string, number>()
  /** Names that found the table full share counters, by a hash that nobody outside can compute. */
  #shared: Uint32Array | null = null
  #secret = ''

  constructor(namesMax: number) {
    this.#namesMax = namesMax
  }

  of(name: string): number {
    return this.#counts.get(name) ?? this.#shared?.[this.#slot(name)] ?? 0
  }

  add(name: string): number {
    const known = this.#counts.get(name)
    if (known !== undefined || this.#counts.size < this.#namesMax) {
      this.#counts.set(name, (known ?? 0) + 1)
      return (known ?? 0) + 1
    }
    this.#shared ??= new Uint32Array(SHARED_COUNTERS)
    const slot = this.#slot(name)
    const count = (this.#shared[slot] as number) + 1
    this.#shared[slot] = count
    return count
  }

  clear(): void {
    this.#counts.clear()
    this.#shared = null
  }

  #slot(name: string): number {
    if (this.#secret === '') this.#secret = randomBytes(32).toString('hex')
    return createHash('sha256')
      .update(this.#secret + name)
      .digest()
      .readUInt16BE(0)
  }
}

/**
 * Counts requests in this process. A name that is an IP address counts as its network: an IPv4
 * address, also in IPv6 notation, as itself, and an IPv6 address as its /64, of which all in one
 * /48 have {@link SITE_FACTOR} times the limit together.
 */
export class AddressLimit {
  readonly #limit: number
  readonly #networks: WindowCounts
  readonly #sites: WindowCounts
  #window = 0

  /**
   * @param namesMax networks that have a counter of their own in one window; all others share
   *   counters
   */
  constructor(limit: number, namesMax = NAMES_MAX) {
    this.#limit = limit
    this.#networks = new WindowCounts(namesMax)
    this.#sites = new WindowCounts(namesMax)
  }

  /** `exceeded` where this request is beyond the allowance. */
  count(address: string, now: number): RateState & { exceeded: boolean } {
    this.#turn(now)
    const { network, site } = clientNetworks(address)
    const left = this.#left(
      this.#networks.add(network),
      site === network ? 0 : this.#sites.add(site),
    )
    return { remaining: Math.max(0, left), reset: windowOf(now).end, exceeded: left < 0 }
  }

  /** What an address has left; costs it nothing. */
  look(address: string, now: number): RateState {
    this.#turn(now)
    const { network, site } = clientNetworks(address)
    const left = this.#left(this.#networks.of(network), site === network ? 0 : this.#sites.of(site))
    return { remaining: Math.max(0, left), reset: windowOf(now).end }
  }

  /** Below zero where a limit is exceeded. */
  #left(ofNetwork: number, ofSite: number): number {
    return Math.min(this.#limit - ofNetwork, this.#limit * SITE_FACTOR - ofSite)
  }

  #turn(now: number): void {
    const { start } = windowOf(now)
    if (start === this.#window) return
    this.#networks.clear()
    this.#sites.clear()
    this.#window = start
  }
}

/**
 * Allowances of a client address, apart from each other: whoever reads open endpoints may still
 * mistype a key.
 */
export class AddressLimits {
  /**
   * Requests that never reached a caller: refused before routing, no such path, failed
   * authentication.
   */
  readonly strangers: AddressLimit
  /** Endpoints that need no key. */
  readonly open: AddressLimit

  constructor(limit: number) {
    this.strangers = new AddressLimit(limit)
    this.open = new AddressLimit(limit)
  }
}
