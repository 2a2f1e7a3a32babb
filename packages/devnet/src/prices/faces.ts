import { RequestError } from '../errors.ts'
import { LAG_MS } from '../faults.ts'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import { coinGecko } from './coingecko.ts'
import { kraken } from './kraken.ts'
import { PRICE_SOURCES, type PriceSourceName, type Quotes } from './quotes.ts'

const PRICE_FAULT_MODES = ['heal', 'down', 'lag', 'malformed', 'stale', 'rate-limited'] as const
type Mode = (typeof PRICE_FAULT_MODES)[number]

const PREFIX = '/prices'

/** The sources of prices on their production protocols, below /prices/coingecko and /prices/kraken. */
export class PriceFaces {
  readonly #quotes: () => Quotes
  /** In memory only: a restart heals. */
  readonly #modes: Record<PriceSourceName, Mode> = { COINGECKO: 'heal', KRAKEN: 'heal' }

  constructor(quotes: () => Quotes) {
    this.#quotes = quotes
  }

  /** The source whose face is at a path, and the rest of the path. */
  static at(path: string): { source: PriceSourceName; rest: string } | null {
    for (const source of PRICE_SOURCES) {
      const base = `${PREFIX}/${source.toLowerCase()}`
      if (path.startsWith(`${base}/`)) return { source, rest: path.slice(base.length) }
    }
    return null
  }

  /** Sets how a source misbehaves, PRICES being all; false where the name is none of theirs. */
  fault(name: unknown, mode: unknown): boolean {
    const sources = PRICE_SOURCES.filter((source) => name === 'PRICES' || name === source)
    if (sources.length === 0) return false
    const known = PRICE_FAULT_MODES.find((candidate) => candidate === mode)
    if (!known) throw new RequestError(`mode ${JSON.stringify(mode)} is unknown: one of ${PRICE_FAULT_MODES.join(', ')}`)
    for (const source of sources) this.#modes[source] = known
    return true
  }

  /** Undefined cuts the connection unanswered. */
  async handle(source: PriceSourceName, request: HttpRequest): Promise<HttpAnswer | undefined> {
    const mode = this.#modes[source]
    if (mode === 'down') return undefined
    if (mode === 'rate-limited') {
      return {
        status: 429, body: '{"status":{"error_code":429,"error_message":"You have exceeded the rate limit."}}',
        headers: { 'retry-after': '1' },
      }
    }
    if (mode === 'malformed') return { status: 200, body: '<html><body>Service is being upgraded</body></html>' }
    if (mode === 'lag') await new Promise((resolve) => setTimeout(resolve, LAG_MS).unref())
    const priceOf = (coin: string) => this.#quotes().get(source, coin)
    // Kraken's protocol has no times: an exchange whose prices stand still says that it is closed.
    return source === 'COINGECKO' ? coinGecko(request, priceOf, mode === 'stale') : kraken(request, priceOf, mode === 'stale')
  }
}
