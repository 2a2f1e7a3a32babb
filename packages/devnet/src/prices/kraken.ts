import { formatAmount } from '../amount.ts'
import type { HttpAnswer, HttpRequest } from '../http-server.ts'
import { PRICE_DECIMALS } from './quotes.ts'

/** Kraken's own names: coin, asset id, alternative name, pair id. It lists no ONE, FTM and KLAY against USD. */
const PAIRS: readonly { coin: string; base: string; alt: string; pair: string }[] = [
  { coin: 'BTC', base: 'XXBT', alt: 'XBT', pair: 'XXBTZUSD' }, { coin: 'ETH', base: 'XETH', alt: 'ETH', pair: 'XETHZUSD' },
  { coin: 'LTC', base: 'XLTC', alt: 'LTC', pair: 'XLTCZUSD' }, { coin: 'XRP', base: 'XXRP', alt: 'XRP', pair: 'XXRPZUSD' },
  { coin: 'XLM', base: 'XXLM', alt: 'XLM', pair: 'XXLMZUSD' }, { coin: 'DOGE', base: 'XXDG', alt: 'XDG', pair: 'XDGUSD' },
  { coin: 'USDT', base: 'USDT', alt: 'USDT', pair: 'USDTZUSD' },
  ...['DASH', 'BCH', 'BNB', 'POL', 'AVAX', 'CRO', 'TRX', 'ADA', 'SOL', 'USDC'].map((coin) => ({
    coin, base: coin, alt: coin, pair: `${coin}USD`,
  })),
]
/** Half the distance of bid and ask: one ten-thousandth of the price. */
const HALF_SPREAD = 10_000n

const answer = (result: unknown, error: string[] = []): HttpAnswer => ({
  status: 200, body: JSON.stringify({ error, ...(error.length > 0 ? {} : { result }) }),
})

/** Spot REST API, version 0, public: Assets, AssetPairs, Ticker. Answers have no time of their own. */
export function kraken({ path, query }: HttpRequest, priceOf: (coin: string) => bigint | undefined, isClosed: boolean): HttpAnswer {
  if (isClosed) return answer(null, ['EService:Unavailable'])
  switch (path) {
    case '/0/public/Assets':
      return answer({ ZUSD: asset('USD', 4), ...Object.fromEntries(PAIRS.map(({ base, alt }) => [base, asset(alt, 10)])) })
    case '/0/public/AssetPairs':
      return answer(
        Object.fromEntries(
          PAIRS.map(({ base, alt, pair }) => [
            pair,
            {
              altname: `${alt}USD`, wsname: `${alt}/USD`, aclass_base: 'currency', base, aclass_quote: 'currency', quote: 'ZUSD',
              lot: 'unit', cost_decimals: 5, pair_decimals: 8, lot_decimals: 8, lot_multiplier: 1, leverage_buy: [], leverage_sell: [],
              fees: [[0, 0.4], [10_000, 0.35]], fees_maker: [[0, 0.25], [10_000, 0.2]],
              fee_volume_currency: 'ZUSD', margin_call: 80, margin_stop: 40, ordermin: '0.0001', costmin: '0.5', tick_size: '0.00000001',
              status: 'online',
            },
          ])
        )
      )
    case '/0/public/Ticker': {
      const names = new URLSearchParams(query).get('pair')?.split(',')
      const wanted = names
        ? names.map((name) => PAIRS.find(({ pair, alt }) => name === pair || name === `${alt}USD` || name === `${alt}/USD`))
        : [...PAIRS]
      if (wanted.includes(undefined)) return answer(null, ['EQuery:Unknown asset pair'])
      return answer(Object.fromEntries(wanted.flatMap((each) => {
        const price = each && priceOf(each.coin)
        return each && price !== undefined ? [[each.pair, ticker(price)]] : []
      })))
    }
    default:
      return { status: 404, body: JSON.stringify({ error: ['EGeneral:Unknown method'] }) }
  }
}

const asset = (altname: string, decimals: number) => ({ aclass: 'currency', altname, decimals, display_decimals: 5, status: 'enabled' })

function ticker(price: bigint): Record<string, unknown> {
  const half = price / HALF_SPREAD
  const show = (value: bigint) => formatAmount(value, PRICE_DECIMALS)
  const [bid, last, ask] = [show(price - half), show(price), show(price + half)]
  return {
    a: [ask, '1', '1.000'], b: [bid, '1', '1.000'], c: [last, '0.10000000'], v: ['120.5', '980.25'], p: [last, last], t: [310, 2240],
    l: [bid, bid], h: [ask, ask], o: last,
  }
}
