import { createHash, randomBytes } from 'node:crypto'
import { clientNetworks } from './client-network.ts'
import { RecentCallers } from './recent-callers.ts'

/**
 * Remaining requests in a one-minute window, and the end of the window (milliseconds since the Unix
 * Epoch).
 */
export interface RateState {
  remaining: number
  reset: number
}

const WINDOW_MS = 60_000
const NAMES_MAX = 50_000
/** Number of shared counters: one for each value of two bytes. */
const SHARED_COUNTERS = 65_536
/** Limit of an IPv6 /48, as a multiple of the limit of a /64. */
export const SITE_FACTOR = 16

/** Returns the full minute that contains `now`. */
export function windowOf(now: number): { start: number; end: number } {
  const start = Math.floor(now / WINDOW_MS) * WINDOW_MS
  return { start, end: start + WINDOW_MS }
}

/**
 * Cached header text for the end of the current window, which is the same for all requests within
 * one minute.
 */
let reported = { reset: Number.NaN, text: '' }

/** Returns the rate-limit headers of every response, in both spellings of the specification. */
export function rateHeaders({ remaining, reset }: RateState): Record<string, string> {
  if (reported.reset !== reset) reported = { reset, text: new Date(reset).toISOString() }
  return {
    'x-rate-limit-remaining': String(remaining),
    'x-rate-limit-limit': '1m',
    'x-ratelimit-limit': '1m',
    'x-rate-limit-reset': reported.text,
  }
}

/**
 * Counts the requests of each name in one window. With any number of names, a count is never lower
 * than the number of requests.
 */
class WindowCounts {
  readonly #namesMax: number
  readonly #counts = new Map<string, number>()
  /**
   * Counters for names that did not fit into the table. They are shared by a hash that a client
   * cannot compute.
   */
  #shared: Uint32Array | null = null
  #secret = ''

  constructor(namesMax: number) {
    this.#namesMax = namesMax
  }

  of(name: string): number {
    return this.#counts.get(name) ?? this.#shared?.[this.#slot(name)] ?? 0
  }

  add(name: string, by: number): number {
    const existing = this.#counts.get(name)
    if (existing !== undefined || this.#counts.size < this.#namesMax) {
      this.#counts.set(name, (existing ?? 0) + by)
      return (existing ?? 0) + by
    }
    this.#shared ??= new Uint32Array(SHARED_COUNTERS)
    const slot = this.#slot(name)
    const count = (this.#shared[slot] as number) + by
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
 * Counts requests in this process. A name that is an IP address is counted by its network: an IPv4
 * address (in IPv6 notation too) by itself, an IPv6 address by its /64. All /64 networks of one /48
 * together have {@link SITE_FACTOR} times the limit.
 */
export class AddressLimit {
  readonly #limit: number
  readonly #networks: WindowCounts
  readonly #sites: WindowCounts
  #window = 0

  /**
   * Creates a limit without counted requests.
   * @param namesMax maximum number of networks with their own counter in one window; all others
   *   share counters
   */
  constructor(limit: number, namesMax = NAMES_MAX) {
    this.#limit = limit
    this.#networks = new WindowCounts(namesMax)
    this.#sites = new WindowCounts(namesMax)
  }

  /**
   * Counts a request. `exceeded` is true if the request is above the limit.
   * @param weight number of requests as which it counts
   */
  count(address: string, now: number, weight = 1): RateState & { exceeded: boolean } {
    this.#turn(now)
    const { network, site } = clientNetworks(address)
    const left = this.#left(
      this.#networks.add(network, weight),
      site === network ? 0 : this.#sites.add(site, weight),
    )
    return { remaining: Math.max(0, left), reset: windowOf(now).end, exceeded: left < 0 }
  }

  /** Returns the remaining requests of an address without counting one. */
  look(address: string, now: number): RateState {
    this.#turn(now)
    const { network, site } = clientNetworks(address)
    const left = this.#left(this.#networks.of(network), site === network ? 0 : this.#sites.of(site))
    return { remaining: Math.max(0, left), reset: windowOf(now).end }
  }

  /** Returns the remaining requests; negative if a limit is exceeded. */
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
 * Separate limits of a client address, so that a client that reads open endpoints can still
 * authenticate after typing errors in a key.
 */
export class AddressLimits {
  /**
   * Limit for requests without an authenticated caller: rejected before routing, unknown path, or
   * failed authentication.
   */
  readonly strangers: AddressLimit
  /** Limit for endpoints that need no key. */
  readonly open: AddressLimit
  /** Callers that are authenticated even if their address has used up its limit. */
  readonly recent = new RecentCallers()

  constructor(limit: number) {
    this.strangers = new AddressLimit(limit)
    this.open = new AddressLimit(limit)
  }
}
