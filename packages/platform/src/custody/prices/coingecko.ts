import { readText, type Fetch } from '@custody/chains'
import { AuthError, JsonNumber, parseJson } from '@custody/request-auth'
import { parsePrice } from './decimals.ts'
import { SourceError, type PriceSource, type Quote } from './source.ts'

const TIMEOUT_MS = 5000
/**
 * Pause after a rate limit (429) without a Retry-After header, and maximum pause, in milliseconds.
 */
const LIMITED_WAIT_MS = 60_000
const LIMITED_WAIT_MS_MAX = 300_000
const ANSWER_BYTES_MAX = 1024 * 1024

export interface CoinGeckoOptions {
  /** Base URL up to and including `/api/v3`. */
  url: string
  key: { header: string; value: string } | null
  /** CoinGecko's coin ids, by ticker. */
  ids: Readonly<Record<string, string>>
  fetch: Fetch
  timeoutMs?: number
}

/**
 * Price source that uses `GET /simple/price`: all coins in one call, each with the time of its last
 * update.
 */
export function coinGecko(o: CoinGeckoOptions): PriceSource {
  const { ids } = o
  return {
    name: 'coingecko',
    async quotes(coins) {
      const existing = coins.filter((coin) => Object.hasOwn(ids, coin))
      const wanted = [...new Set(existing.map((coin) => ids[coin] as string))].sort()
      const query = `ids=${wanted.map(encodeURIComponent).join(',')}&vs_currencies=usd&include_last_updated_at=true&precision=full`
      const text = await ask(o, `${o.url}/simple/price?${query}`)
      const answer = objectOf(text)
      return existing.flatMap((coin): Quote[] => {
        const entry = answer[ids[coin] as string]
        // An unknown coin is missing in the response; a coin without a market is null.
        if (typeof entry !== 'object' || entry === null) return []
        const { usd, last_updated_at: updated } = entry as Record<string, unknown>
        if (
          !(usd instanceof JsonNumber) ||
          !(updated instanceof JsonNumber) ||
          !/^\d{1,12}$/.test(updated.text)
        )
          return []
        const price = parsePrice(usd.text)
        return price === null ? [] : [{ coin, price, at: Number(updated.text) * 1000 }]
      })
    },
  }
}

function objectOf(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    if (error instanceof AuthError) throw new SourceError('the response is not JSON')
    throw error
  }
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    value instanceof JsonNumber
  ) {
    throw new SourceError('the response is not an object')
  }
  return value as Record<string, unknown>
}

async function ask(o: CoinGeckoOptions, url: string): Promise<string> {
  let response: Response
  let text: string | null
  try {
    response = await o.fetch(url, {
      headers: { accept: 'application/json', ...(o.key ? { [o.key.header]: o.key.value } : {}) },
      redirect: 'error',
      signal: AbortSignal.timeout(o.timeoutMs ?? TIMEOUT_MS),
    })
    text = await readText(response, ANSWER_BYTES_MAX)
  } catch (error) {
    throw new SourceError(
      `cannot be reached: ${error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : 'unknown'}`,
    )
  }
  if (response.status === 429) {
    const requestedAt = Number(response.headers.get('retry-after') ?? '') * 1000
    throw new SourceError(
      'limits the request rate (429)',
      requestedAt > 0 ? Math.min(requestedAt, LIMITED_WAIT_MS_MAX) : LIMITED_WAIT_MS,
    )
  }
  if (response.status !== 200) throw new SourceError(`returned ${response.status}`)
  if (text === null) throw new SourceError('the response is too large')
  return text
}
