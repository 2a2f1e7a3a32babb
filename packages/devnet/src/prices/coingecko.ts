import { formatAmount } from '../amount.ts'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import { REGISTRY } from '../registry.ts'
import { PRICE_DECIMALS } from './quotes.ts'

/**
 * Coins by CoinGecko's id: those of the asset registry, and those that an installation configures.
 */
const IDS = new Map([
  ...REGISTRY.coins.map(({ ticker, coingecko_id: id }) => [id, ticker] as const),
  ...(process.env['CUSTODY_COINGECKO_IDS'] ?? '').split(',').flatMap((pair) => {
    const [coin, id] = pair.split('=').map((word) => word.trim())
    return coin && id ? [[id, coin] as const] : []
  }),
])
const STALE_S = 600

const status = (code: number, message: string): HttpAnswer => ({
  status: code,
  body: JSON.stringify({ status: { error_code: code, error_message: message } }),
})

/** API v3, `simple/price`: unknown ids are left out; numbers have all their digits. */
export function coinGecko(
  { method, path, query }: HttpRequest,
  priceOf: (coin: string) => bigint | undefined,
  isStale: boolean,
): HttpAnswer {
  if (path !== '/simple/price' || method !== 'GET')
    return status(404, 'Incorrect path. Please check https://www.coingecko.com/api/')
  const params = new URLSearchParams(query)
  const ids = params.get('ids')
  if (params.get('vs_currencies') === null)
    return { status: 422, body: JSON.stringify({ error: 'Missing parameter vs_currencies' }) }
  if (ids === null)
    return {
      status: 422,
      body: JSON.stringify({ error: 'Missing parameter ids, names or symbols' }),
    }
  const isUsd = params.get('vs_currencies')?.split(',').includes('usd')
  const updated = Math.floor(Date.now() / 1000) - (isStale ? STALE_S : 0)
  const entries = ids.split(',').flatMap((id) => {
    const coin = IDS.get(id)
    const price = coin === undefined ? undefined : priceOf(coin)
    if (price === undefined) return []
    const fields = [
      ...(isUsd ? [`"usd":${formatAmount(price, PRICE_DECIMALS).replace(/\.?0+$/, '')}`] : []),
      ...(params.get('include_last_updated_at') === 'true' ? [`"last_updated_at":${updated}`] : []),
    ]
    return [`${JSON.stringify(id)}:{${fields.join(',')}}`]
  })
  return { status: 200, body: `{${entries.join(',')}}` }
}
