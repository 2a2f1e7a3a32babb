import { formatAmount } from '../amount.ts'
import type { HttpAnswer, HttpRequest } from '../http.ts'
import { PRICE_DECIMALS } from './quotes.ts'

const IDS: Record<string, string> = {
  bitcoin: 'BTC', litecoin: 'LTC', dash: 'DASH', dogecoin: 'DOGE', 'bitcoin-cash': 'BCH', ethereum: 'ETH', binancecoin: 'BNB', 'polygon-ecosystem-token': 'POL',
  'avalanche-2': 'AVAX', fantom: 'FTM', 'crypto-com-chain': 'CRO', harmony: 'ONE', 'klay-token': 'KLAY', tron: 'TRX', ripple: 'XRP', stellar: 'XLM', cardano: 'ADA',
  solana: 'SOL', tether: 'USDT', 'usd-coin': 'USDC',
}
const STALE_S = 600

const status = (code: number, message: string): HttpAnswer => ({ status: code, body: JSON.stringify({ status: { error_code: code, error_message: message } }) })

/** API v3, `simple/price`: ids that it does not know are left out; numbers stand with all their digits. */
export function coinGecko({ method, path, query }: HttpRequest, priceOf: (coin: string) => bigint | undefined, isStale: boolean): HttpAnswer {
  if (path !== '/simple/price' || method !== 'GET') return status(404, 'Incorrect path. Please check https://www.coingecko.com/api/')
  const asked = new URLSearchParams(query)
  const ids = asked.get('ids')
  if (asked.get('vs_currencies') === null) return { status: 422, body: JSON.stringify({ error: 'Missing parameter vs_currencies' }) }
  if (ids === null) return { status: 422, body: JSON.stringify({ error: 'Missing parameter ids, names or symbols' }) }
  const isUsd = asked.get('vs_currencies')?.split(',').includes('usd')
  const updated = Math.floor(Date.now() / 1000) - (isStale ? STALE_S : 0)
  const entries = ids.split(',').flatMap((id) => {
    const coin = Object.hasOwn(IDS, id) ? IDS[id] : undefined
    const price = coin === undefined ? undefined : priceOf(coin)
    if (price === undefined) return []
    const fields = [...(isUsd ? [`"usd":${formatAmount(price, PRICE_DECIMALS).replace(/\.?0+$/, '')}`] : []), ...(asked.get('include_last_updated_at') === 'true' ? [`"last_updated_at":${updated}`] : [])]
    return [`${JSON.stringify(id)}:{${fields.join(',')}}`]
  })
  return { status: 200, body: `{${entries.join(',')}}` }
}
