import { join } from 'node:path'
import { LAG_MS } from '../faults.ts'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import type { LocalChain } from '../local-chain.ts'
import type { Quotes } from '../prices/quotes.ts'
import { BinanceFace } from './binance/index.ts'
import { BINANCE } from './binance/names.ts'
import { EXCHANGES, type ExchangeName } from './faults.ts'
import { KrakenFace } from './kraken/index.ts'
import { KRAKEN } from './kraken/names.ts'
import { Venue, type FaceAnswer, type VenueKind } from './venue.ts'

const PREFIX = '/exchanges'

/** Protocol of one exchange on top of a venue. */
interface VenueApi {
  handle: (request: HttpRequest) => Promise<FaceAnswer>
  rateLimited: HttpAnswer
  unavailable: HttpAnswer
  /** Response of the exchange if it does not know whether an operation was executed. */
  unknown: HttpAnswer
}

const KINDS: Record<ExchangeName, { kind: VenueKind; api: (venue: Venue) => VenueApi }> = {
  KRAKEN: { kind: KRAKEN, api: (venue) => new KrakenFace(venue) },
  BINANCE: { kind: BINANCE, api: (venue) => new BinanceFace(venue) },
}

/**
 * Emulators of the exchanges with their production protocols, below /exchanges/kraken and
 * /exchanges/binance.
 */
export class VenueEmulators {
  readonly #o: { home: string; quotes: () => Quotes; chains: readonly LocalChain[] }
  readonly #open = new Map<ExchangeName, { venue: Venue; api: VenueApi }>()

  /** Venues are created on first use. */
  constructor(options: { home: string; quotes: () => Quotes; chains: readonly LocalChain[] }) {
    this.#o = options
  }

  /** Returns the exchange whose emulator serves a path, and the rest of the path. */
  static at(path: string): { exchange: ExchangeName; rest: string } | null {
    for (const exchange of EXCHANGES) {
      const base = `${PREFIX}/${exchange.toLowerCase()}`
      if (path.startsWith(`${base}/`)) return { exchange, rest: path.slice(base.length) }
    }
    return null
  }

  static pathOf(exchange: ExchangeName): string {
    return `${PREFIX}/${exchange.toLowerCase()}`
  }

  venue(exchange: ExchangeName): Venue {
    return this.#opened(exchange).venue
  }

  /**
   * Sets the fault mode of an exchange, or of all of them (PRICES). Returns false for an unknown
   * name.
   */
  fault(name: unknown, mode: unknown): boolean {
    const exchanges = EXCHANGES.filter((exchange) => name === 'PRICES' || name === exchange)
    for (const exchange of exchanges) this.venue(exchange).faults.set(mode)
    return exchanges.length > 0
  }

  close(): void {
    for (const { venue } of this.#open.values()) venue.close()
  }

  /** Handles a request. Undefined closes the connection without a response. */
  async handle(exchange: ExchangeName, request: HttpRequest): Promise<HttpAnswer | undefined> {
    const {
      venue: { faults },
      api,
    } = this.#opened(exchange)
    const { mode } = faults
    if (mode === 'down') return undefined
    if (mode === 'rate-limited') return api.rateLimited
    if (mode === 'malformed')
      return { status: 200, body: '<html><body>Service is being upgraded</body></html>' }
    // Prices in these protocols have no timestamps, so an exchange with stale prices reports that
    // it is closed.
    if (mode === 'stale') return api.unavailable
    const { isDeed, ...answer } = await api.handle(request)
    if (mode === 'lag') await new Promise((resolve) => setTimeout(resolve, LAG_MS).unref())
    const loss = isDeed ? faults.takeLoss() : null
    if (loss === 'drop-answer') return undefined
    return loss === 'unknown-answer'
      ? api.unknown
      : { ...answer, isStalled: loss === 'stalled-answer' }
  }

  #opened(exchange: ExchangeName): { venue: Venue; api: VenueApi } {
    const open = this.#open.get(exchange)
    if (open) return open
    const { kind, api } = KINDS[exchange]
    const { home, quotes, chains } = this.#o
    const path = join(home, `${exchange.toLowerCase()}.journal`)
    const venue = new Venue(kind, path, (coin) => quotes().get(exchange, coin), chains)
    const opened = { venue, api: api(venue) }
    this.#open.set(exchange, opened)
    return opened
  }
}
