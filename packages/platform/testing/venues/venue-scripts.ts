import { generateKeyPairSync } from 'node:crypto'
import { systemEnvironment, type Environment } from '../../src/core/environment.ts'
import { Venues, type Credentials } from '../../src/commerce/exchanges/venues.ts'
import type { Venue } from '../../src/commerce/exchanges/venue.ts'

/**
 * A response of a scripted exchange: a body, with a status other than 200 if given; a string is
 * returned unchanged; `cut`: the connection closes without a response.
 */
export type Scripted = { status?: number; body: unknown } | 'cut' | 'stall'
export interface VenueRequest {
  method: string
  path: string
  query: string
  body: string
  host: string
}

/**
 * Returns scripted responses by path. The responses of a list are returned in turn, and the last
 * one is repeated. A path without a script returns 404.
 */
export class ScriptedExchange {
  readonly requests: VenueRequest[] = []
  readonly answers: Record<string, Scripted | Scripted[] | ((request: VenueRequest) => Scripted)>
  readonly #taken = new Map<string, number>()

  constructor(answers: ScriptedExchange['answers']) {
    this.answers = answers
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const url = new URL(String(input))
    const received = {
      method: init?.method ?? 'GET',
      path: url.pathname,
      query: url.search.slice(1),
      body: String(init?.body ?? ''),
      host: url.host,
    }
    this.requests.push(received)
    const script = this.answers[`${received.method} ${url.pathname}`] ?? this.answers[url.pathname]
    const at = this.#taken.get(url.pathname) ?? 0
    this.#taken.set(url.pathname, at + 1)
    const answer =
      typeof script === 'function'
        ? script(received)
        : Array.isArray(script)
          ? script[Math.min(at, script.length - 1)]
          : script
    if (answer === 'cut') throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
    if (answer === 'stall') {
      const body = new ReadableStream({
        start(stream) {
          stream.enqueue(new TextEncoder().encode('{"error":['))
          init?.signal?.addEventListener('abort', () => stream.error(init.signal?.reason))
        },
      })
      return new Response(body, { status: 200 })
    }
    const { status = 200, body } = answer ?? { status: 404, body: `no script for ${url.pathname}` }
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/json' },
    })
  }

  /** Returns the requests to a path, decoded as forms or JSON. */
  sent(path: string): Record<string, string>[] {
    return this.requests
      .filter((each) => each.path === path)
      .map(({ body, query }) => {
        if (body.startsWith('{')) return JSON.parse(body) as Record<string, string>
        return Object.fromEntries(new URLSearchParams(body === '' ? query : body))
      })
  }
}

/** Returns increasing nonces of one process, kept in memory. */
export function memoryNonces() {
  let last = 0n
  const taken: bigint[] = []
  return {
    taken,
    take: async () => {
      last += 1n
      taken.push(last)
      return 1_700_000_000_000n + last
    },
    giveBack: async () => undefined,
  }
}

const { privateKey } = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'sec1', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})

/** Credentials of the form that each exchange requires. */
export const CREDENTIALS: Readonly<Record<string, Credentials>> = {
  kraken: {
    apiKey: 'key',
    apiSecret: Buffer.from('secret of kraken').toString('base64'),
    passphrase: null,
  },
  binance: { apiKey: 'key', apiSecret: 'secret', passphrase: null },
  coinbase: { apiKey: 'organizations/a/apiKeys/b', apiSecret: privateKey, passphrase: null },
  okx: { apiKey: 'key', apiSecret: 'secret', passphrase: 'phrase' },
  bitstamp: { apiKey: 'key', apiSecret: 'secret', passphrase: null },
}

/**
 * Response of each exchange to a request for its markets, in the format of its public
 * documentation.
 */
export const MARKETS: Record<string, ScriptedExchange['answers']> = {
  kraken: {
    '/0/public/Assets': {
      body: {
        error: [],
        result: {
          XXBT: {
            aclass: 'currency',
            altname: 'XBT',
            decimals: 10,
            display_decimals: 5,
            status: 'enabled',
          },
          ZUSD: {
            aclass: 'currency',
            altname: 'USD',
            decimals: 4,
            display_decimals: 2,
            status: 'enabled',
          },
          USDC: {
            aclass: 'currency',
            altname: 'USDC',
            decimals: 8,
            display_decimals: 2,
            status: 'enabled',
          },
        },
      },
    },
    '/0/public/AssetPairs': {
      body: {
        error: [],
        result: {
          XXBTZUSD: {
            altname: 'XBTUSD',
            wsname: 'XBT/USD',
            aclass_base: 'currency',
            base: 'XXBT',
            aclass_quote: 'currency',
            quote: 'ZUSD',
            lot: 'unit',
            cost_decimals: 5,
            pair_decimals: 2,
            lot_decimals: 8,
            lot_multiplier: 1,
            leverage_buy: [],
            leverage_sell: [],
            fees: [[0, 0.4]],
            fees_maker: [[0, 0.25]],
            ordermin: '0.0001',
            costmin: '0.5',
            tick_size: '0.1',
            status: 'online',
          },
        },
      },
    },
  },
  binance: {
    '/api/v3/exchangeInfo': {
      body: {
        timezone: 'UTC',
        serverTime: 1,
        rateLimits: [],
        exchangeFilters: [],
        symbols: [
          {
            symbol: 'BTCUSDT',
            status: 'TRADING',
            baseAsset: 'BTC',
            baseAssetPrecision: 8,
            quoteAsset: 'USDT',
            quotePrecision: 8,
            quoteAssetPrecision: 8,
            orderTypes: ['LIMIT', 'LIMIT_MAKER', 'MARKET'],
            isSpotTradingAllowed: true,
            isMarginTradingAllowed: false,
            permissions: ['SPOT'],
            filters: [
              {
                filterType: 'PRICE_FILTER',
                minPrice: '0.01000000',
                maxPrice: '1000000.00000000',
                tickSize: '0.01000000',
              },
              {
                filterType: 'LOT_SIZE',
                minQty: '0.00001000',
                maxQty: '9000.00000000',
                stepSize: '0.00001000',
              },
              { filterType: 'NOTIONAL', minNotional: '5.00000000', applyMinToMarket: true },
            ],
          },
        ],
      },
    },
  },
  coinbase: {
    '/api/v3/brokerage/market/products': ({ query }) => ({
      body: {
        products: query.includes('FUTURE')
          ? []
          : [
              {
                product_id: 'BTC-USD',
                price: '60000',
                base_increment: '0.00000001',
                quote_increment: '0.01',
                price_increment: '0.01',
                quote_min_size: '1',
                quote_max_size: '150000000',
                base_min_size: '0.00000001',
                base_max_size: '3400',
                base_name: 'Bitcoin',
                quote_name: 'US Dollar',
                status: 'online',
                trading_disabled: false,
                product_type: 'SPOT',
                quote_currency_id: 'USD',
                base_currency_id: 'BTC',
                base_display_symbol: 'BTC',
                quote_display_symbol: 'USD',
              },
            ],
      },
    }),
    '/v2/currencies': { body: { data: [{ id: 'USD', name: 'US Dollar', min_size: '0.01' }] } },
    '/v2/currencies/crypto': {
      body: {
        data: [{ code: 'BTC', name: 'Bitcoin', exponent: 8, asset_id: 'x', type: 'crypto' }],
      },
    },
    '/v2/exchange-rates': { body: { data: { currency: 'USD', rates: { BTC: '0.00002' } } } },
  },
  okx: {
    '/api/v5/public/instruments': {
      body: {
        code: '0',
        msg: '',
        data: [
          {
            instType: 'SPOT',
            instId: 'BTC-USDT',
            baseCcy: 'BTC',
            quoteCcy: 'USDT',
            tickSz: '0.1',
            lotSz: '0.00000001',
            minSz: '0.00001',
            maxLmtSz: '9999999999',
            state: 'live',
            alias: '',
            ctVal: '',
            uly: '',
            lever: '',
          },
        ],
      },
    },
  },
  bitstamp: {
    '/api/v2/markets/': {
      body: [
        {
          name: 'BTC/USD',
          market_symbol: 'btcusd',
          base_currency: 'BTC',
          base_decimals: 8,
          counter_currency: 'USD',
          counter_decimals: 0,
          minimum_order_value: '10',
          maximum_order_value: '30000000',
          minimum_order_amount: '0.00000001',
          trading: 'Enabled',
          instant_order_counter_decimals: 2,
          instant_and_market_orders: 'Enabled',
          description: 'Bitcoin / U.S. dollar',
          market_type: 'SPOT',
        },
      ],
    },
    '/api/v2/currencies/': {
      body: [
        {
          name: 'Bitcoin',
          currency: 'BTC',
          type: 'crypto',
          symbol: '฿',
          decimals: 8,
          logo: '',
          available_supply: '1',
          deposit: 'Enabled',
          withdrawal: 'Enabled',
        },
        {
          name: 'US dollar',
          currency: 'USD',
          type: 'fiat',
          symbol: '$',
          decimals: 2,
          logo: '',
          available_supply: '1',
          deposit: 'Enabled',
          withdrawal: 'Enabled',
        },
      ],
    },
  },
}

export interface StagedVenue {
  script: ScriptedExchange
  venue: Venue
  venues: Venues
  nonces: ReturnType<typeof memoryNonces>
}

/** Returns an account at a scripted exchange, through the real client of that exchange. */
export async function stagedVenue(
  exchange: string,
  answers: ScriptedExchange['answers'],
  environment: Environment = systemEnvironment(),
  timeoutMs?: number,
): Promise<StagedVenue> {
  const script = new ScriptedExchange({ ...MARKETS[exchange], ...answers })
  const nonces = memoryNonces()
  const venues = new Venues({
    urls: {},
    only: null,
    environment,
    fetch: script.fetch as typeof fetch,
    nonces,
    paced: false,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })
  const venue = await venues.account({
    id: 'account',
    exchange,
    key: '1',
    open: () => CREDENTIALS[exchange] as Credentials,
  })
  return { script, venue, venues, nonces }
}
