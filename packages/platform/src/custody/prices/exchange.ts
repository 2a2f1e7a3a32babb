import type { Fetch } from '@custody/chains'
import { openClient, redacted, type CcxtClient } from '../../core/ccxt.ts'
import type { Environment } from '../../core/environment.ts'
import { parsePrice } from './decimals.ts'
import { SourceError, type PriceSource, type Quote } from './source.ts'

interface Ticker {
  symbol: string
  bid?: string
  ask?: string
  timestamp?: number
}
interface Exchange extends CcxtClient {
  markets: Record<string, { symbol: string; active?: boolean; spot?: boolean }> | undefined
  fetchTickers(symbols: string[]): Promise<Record<string, Ticker>>
  fetchTicker(symbol: string): Promise<Ticker>
}

const TIMEOUT_MS = 8000
const MARKETS_MS = 3_600_000
/**
 * Maximum spread between bid and ask in basis points; a market with a wider spread has no price.
 */
const SPREAD_BASIS_POINTS_MAX = 200n

export interface ExchangeOptions {
  /** ccxt's name of the exchange. */
  id: string
  /** Base URL that replaces the exchange's own; null: its own. */
  url: string | null
  environment: Environment
  fetch: Fetch
  timeoutMs?: number
}

/**
 * Price source that reads tickers of an exchange through ccxt, for real USD only. The price is the
 * middle of bid and ask, which are current, while the last trade may be old.
 */
export function exchange(o: ExchangeOptions): PriceSource {
  // The client is opened immediately instead of at the first price query, because loading ccxt's
  // module takes a while. The few calls of this price source need no rate limiter.
  const opening = openClient<Exchange>({
    id: o.id,
    url: o.url,
    fetch: o.fetch,
    timeoutMs: o.timeoutMs ?? TIMEOUT_MS,
  })
  // Callers of `quotes` receive the error.
  opening.catch(() => undefined)
  let loadedAt = 0
  return {
    name: o.id,
    async quotes(coins) {
      try {
        const client = await opening
        const askedAt = o.environment.now()
        if (client.markets === undefined || askedAt - loadedAt > MARKETS_MS) {
          await client.loadMarkets(true)
          loadedAt = askedAt
        }
        const wanted = new Map(coins.map((coin) => [`${coin}/USD`, coin]))
        const symbols = [...wanted.keys()].filter(
          (symbol) =>
            client.markets?.[symbol]?.active !== false && client.markets?.[symbol] !== undefined,
        )
        if (symbols.length === 0) return []
        const tickers =
          client.has['fetchTickers'] === true
            ? Object.values(await client.fetchTickers(symbols))
            : await Promise.all(symbols.map((symbol) => client.fetchTicker(symbol)))
        if (tickers.length === 0) throw new SourceError('the response contains no tickers')
        return tickers.flatMap((ticker): Quote[] => {
          const coin = wanted.get(ticker.symbol)
          const price = middle(ticker)
          return coin === undefined || price === null
            ? []
            : [{ coin, price, at: ticker.timestamp ?? askedAt }]
        })
      } catch (error) {
        if (error instanceof SourceError) throw error
        // ccxt's errors contain the URL and the whole response.
        throw new SourceError(redacted(error))
      }
    },
  }
}

function middle({ bid, ask }: Ticker): bigint | null {
  const [low, high] = [parsePrice(String(bid ?? '')), parsePrice(String(ask ?? ''))]
  if (low === null || high === null || high < low) return null
  const price = (low + high) / 2n
  return (high - low) * 10_000n > price * SPREAD_BASIS_POINTS_MAX ? null : price
}
