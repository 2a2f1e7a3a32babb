import { RequestError } from '../errors.ts'
import { LAG_MS } from '../faults.ts'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import { coinGecko } from './coingecko.ts'
import type { Quotes } from './quotes.ts'

const PRICE_FAULT_MODES = ['heal', 'down', 'lag', 'malformed', 'stale', 'rate-limited'] as const
type Mode = (typeof PRICE_FAULT_MODES)[number]

const BASE = '/prices/coingecko'

/**
 * Emulator of CoinGecko with its production protocol, below /prices/coingecko. Exchanges return
 * their prices themselves.
 */
export class PriceEmulators {
  readonly #quotes: () => Quotes
  /** Kept in memory only, so a restart ends it. */
  #mode: Mode = 'heal'

  constructor(quotes: () => Quotes) {
    this.#quotes = quotes
  }

  /** Returns the rest of a path below CoinGecko's; null for other paths. */
  static at(path: string): { rest: string } | null {
    return path.startsWith(`${BASE}/`) ? { rest: path.slice(BASE.length) } : null
  }

  /** Sets the fault mode; PRICES means all sources. Returns false for an unknown name. */
  fault(name: unknown, mode: unknown): boolean {
    if (name !== 'PRICES' && name !== 'COINGECKO') return false
    const validMode = PRICE_FAULT_MODES.find((candidate) => candidate === mode)
    if (!validMode)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown; must be one of ${PRICE_FAULT_MODES.join(', ')}`,
      )
    this.#mode = validMode
    return true
  }

  /** Handles a request. Undefined closes the connection without a response. */
  async handle(request: HttpRequest): Promise<HttpAnswer | undefined> {
    const mode = this.#mode
    if (mode === 'down') return undefined
    if (mode === 'rate-limited') {
      return {
        status: 429,
        body: '{"status":{"error_code":429,"error_message":"You have exceeded the rate limit."}}',
        headers: { 'retry-after': '1' },
      }
    }
    if (mode === 'malformed')
      return { status: 200, body: '<html><body>Service is being upgraded</body></html>' }
    if (mode === 'lag') await new Promise((resolve) => setTimeout(resolve, LAG_MS).unref())
    return coinGecko(request, (coin) => this.#quotes().get('COINGECKO', coin), mode === 'stale')
  }
}
