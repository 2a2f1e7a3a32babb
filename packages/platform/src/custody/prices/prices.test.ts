import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import * as fc from '../../../../../testing/property.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { consensusPrice } from './consensus-price.ts'
import { coinGecko } from './coingecko.ts'
import { parsePrice, PRICE_DECIMALS, usdValue } from './decimals.ts'
import { exchange } from './exchange.ts'
import { Prices } from './prices.ts'
import { pricesInstallation } from './settings.ts'
import { readSettings } from '../../core/settings/settings.ts'
import { SourceError, type PriceSource, type Quote } from './source.ts'

const usd = (text: string) => parsePrice(text) as bigint
const SCALE = 10n ** BigInt(PRICE_DECIMALS)
const NOW = Date.UTC(2026, 0, 1)
const IDS = {
  BTC: 'bitcoin',
  USDT: 'tether',
  DASH: 'dash',
  XRP: 'ripple',
  SOL: 'solana',
  XLM: 'other-id',
}

/** Returns scripted responses by path, and records the requests. */
function scripted(
  answers: Record<string, unknown>,
  status = 200,
  headers: Record<string, string> = {},
) {
  const seen: { url: URL; headers: Headers }[] = []
  const fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(input)
    seen.push({ url, headers: new Headers(init?.headers) })
    const answer = answers[url.pathname]
    if (answer === 'cut') throw new TypeError('fetch failed', { cause: new Error('ECONNRESET') })
    if (answer === 'silent')
      return new Promise((_, reject) =>
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
    return new Response(
      typeof answer === 'string'
        ? answer
        : JSON.stringify(answer ?? { error: ['EGeneral:Unknown method'] }),
      { status, headers },
    )
  }
  return { seen, fetch: fetch as typeof globalThis.fetch }
}

test('reads every digit and exponent of a price; malformed values and zero are not prices', () => {
  assert.deepEqual(['60000', '60000.5', '6e4', '1.5E-7', '0.000000000001'].map(parsePrice), [
    60_000n * SCALE,
    60_000n * SCALE + SCALE / 2n,
    60_000n * SCALE,
    150_000n,
    1n,
  ])
  for (const bad of [
    '',
    '-1',
    '0',
    '0.0',
    'NaN',
    '1e999',
    'Infinity',
    '0x10',
    ' 1',
    '1e-13',
    'undefined',
  ])
    assert.equal(parsePrice(bad), null, bad)
  assert.equal(usdValue(10n ** 18n, 18, usd('3000')), 3_000_000_000n)
  assert.equal(usdValue(1n, 8, usd('60000')), 600n)
  assert.equal(usdValue(1n, 18, usd('3000')), 0n)
  assert.equal(usdValue(123_456_789n, 6, usd('1.0003')), 123_493_826n)
})

test('CoinGecko: one request for all coins; unknown coins and coins without a market are omitted', async () => {
  const { seen, fetch } = scripted({
    '/api/v3/simple/price':
      '{"bitcoin":{"usd":67187.3358936566,"last_updated_at":1711356300},"tether":{"usd":1.0003,"last_updated_at":1711356301},"dash":{"usd":null,"last_updated_at":1711356300},"ripple":{"usd":5.5e-7,"last_updated_at":1711356300},"solana":{"usd":"12","last_updated_at":1711356300}}',
  })
  const source = coinGecko({
    url: 'https://host/api/v3',
    key: { header: 'x-cg-demo-api-key', value: 'secret' },
    ids: IDS,
    fetch,
  })
  const quotes = await source.quotes(['BTC', 'USDT', 'DASH', 'XRP', 'SOL', 'XLM', 'UNKNOWN'])
  assert.deepEqual(
    quotes.map(({ coin, price, at }) => [coin, price, at]),
    [
      ['BTC', 67_187_335_893_656_600n * 1n, 1_711_356_300_000],
      ['USDT', usd('1.0003'), 1_711_356_301_000],
      ['XRP', 550_000n, 1_711_356_300_000],
    ],
  )
  const [{ url, headers }] = seen as [(typeof seen)[0]]
  assert.deepEqual(
    [
      url.searchParams.get('ids'),
      url.searchParams.get('vs_currencies'),
      url.searchParams.get('include_last_updated_at'),
      headers.get('x-cg-demo-api-key'),
    ],
    ['bitcoin,dash,other-id,ripple,solana,tether', 'usd', 'true', 'secret'],
  )
})

test('CoinGecko: a failed or malformed response is an error that contains no API key', async () => {
  const broken: [unknown, number][] = [
    ['cut', 200],
    ['silent', 200],
    ['<html>', 200],
    ['[]', 200],
    ['', 200],
    [{}, 429],
    [{ status: { error_code: 10_002 } }, 401],
    [{}, 500],
  ]
  for (const [answer, status] of broken) {
    const source = coinGecko({
      url: 'https://host',
      key: { header: 'x-cg-pro-api-key', value: 'secret' },
      ids: IDS,
      fetch: scripted({ '/simple/price': answer }, status, { 'retry-after': '7' }).fetch,
      timeoutMs: 30,
    })
    await assert.rejects(
      source.quotes(['BTC']),
      (error: unknown) =>
        error instanceof SourceError &&
        !error.message.includes('secret') &&
        error.waitMs === (status === 429 ? 7000 : 0),
    )
  }
})

/** Returns a currency pair in the format of the exchange's public documentation. */
const pair = (base: string, alt: string, more: Record<string, unknown> = {}) => ({
  altname: `${alt}USD`,
  wsname: `${alt}/USD`,
  aclass_base: 'currency',
  base,
  aclass_quote: 'currency',
  quote: 'ZUSD',
  lot: 'unit',
  cost_decimals: 5,
  pair_decimals: 1,
  lot_decimals: 8,
  lot_multiplier: 1,
  leverage_buy: [2, 3],
  leverage_sell: [2, 3],
  fees: [
    [0, 0.4],
    [10_000, 0.35],
  ],
  fees_maker: [[0, 0.25]],
  fee_volume_currency: 'ZUSD',
  margin_call: 80,
  margin_stop: 40,
  ordermin: '0.00005',
  costmin: '0.5',
  tick_size: '0.1',
  status: 'online',
  ...more,
})
const book = (bid: string, ask: string) => ({
  a: [ask, '1', '1.000'],
  b: [bid, '1', '1.000'],
  c: ['1.00000', '0.00067643'],
  v: ['4083.67001100', '4412.73601799'],
  p: ['1.0', '1.0'],
  t: [34_619, 38_907],
  l: ['1.0', '1.0'],
  h: ['1.0', '1.0'],
  o: '1.0',
})
const asset = (altname: string) => ({
  aclass: 'currency',
  altname,
  decimals: 10,
  display_decimals: 5,
  status: 'enabled',
})
const kraken = {
  '/0/public/Assets': {
    error: [],
    result: {
      XXBT: asset('XBT'),
      XXDG: asset('XDG'),
      USDT: asset('USDT'),
      XETH: asset('ETH'),
      SOL: asset('SOL'),
      ZUSD: { ...asset('USD'), decimals: 4 },
    },
  },
  '/0/public/AssetPairs': {
    error: [],
    result: {
      XXBTZUSD: pair('XXBT', 'XBT'),
      XDGUSD: pair('XXDG', 'XDG'),
      USDTZUSD: pair('USDT', 'USDT'),
      XETHZUSD: pair('XETH', 'ETH'),
      SOLUSD: pair('SOL', 'SOL', { status: 'cancel_only' }),
    },
  },
  '/0/public/Ticker': {
    error: [],
    result: {
      XXBTZUSD: book('30300.00000', '30300.20000'),
      XDGUSD: book('0.12345678', '0.12345680'),
      USDTZUSD: book('0.99990', '1.00010'),
      XETHZUSD: book('1000.00', '1900.00'),
    },
  },
}

test('exchange tickers: the price is the middle of bid and ask, and a closed market has none', async () => {
  const { seen, fetch } = scripted(kraken)
  const source = exchange({
    id: 'kraken',
    url: 'https://host',
    environment: { ...systemEnvironment(), now: () => NOW },
    fetch,
  })
  assert.deepEqual(await source.quotes(['BTC', 'DOGE', 'USDT', 'ETH', 'SOL', 'ONE']), [
    { coin: 'BTC', price: usd('30300.1'), at: NOW },
    { coin: 'DOGE', price: usd('0.12345679'), at: NOW },
    { coin: 'USDT', price: usd('1'), at: NOW },
  ])
  const pairs = seen
    .filter(({ url }) => url.pathname === '/0/public/Ticker')
    .map(({ url }) => url.searchParams.get('pair'))
  assert.deepEqual(pairs, ['XXBTZUSD,XDGUSD,USDTZUSD,XETHZUSD'])
  await source.quotes(['BTC'])
  assert.equal(
    seen.filter(({ url }) => url.pathname === '/0/public/AssetPairs').length,
    1,
    'markets are kept',
  )
})

test('an exchange that is unreachable or in maintenance is an error, and is used again later', async () => {
  for (const answer of ['cut', '<html>', { error: ['EService:Unavailable'] }]) {
    const answers: Record<string, unknown> = { ...kraken, '/0/public/Ticker': answer }
    const source = exchange({
      id: 'kraken',
      url: 'https://host',
      environment: systemEnvironment(),
      fetch: scripted(answers).fetch,
      timeoutMs: 100,
    })
    await assert.rejects(source.quotes(['BTC']), SourceError)
    answers['/0/public/Ticker'] = kraken['/0/public/Ticker']
    assert.equal((await source.quotes(['BTC'])).length, 1)
  }
})

const quote = (source: string, price: string, ageMs = 0): Quote & { source: string } => ({
  source,
  coin: 'BTC',
  price: usd(price),
  at: NOW - ageMs,
})

test('the agreed price is the median of fresh prices, without those more than 2 % away', () => {
  assert.deepEqual(consensusPrice([quote('a', '100'), quote('b', '101')], NOW), {
    price: usd('100.5'),
    at: NOW,
    sources: ['a', 'b'],
  })
  assert.deepEqual(consensusPrice([quote('a', '100'), quote('b', '101'), quote('c', '150')], NOW), {
    price: usd('100.5'),
    at: NOW,
    sources: ['a', 'b'],
  })
  assert.deepEqual(consensusPrice([quote('a', '100'), quote('b', '90', 61_000)], NOW)?.sources, [
    'a',
  ])
  assert.equal(
    consensusPrice([quote('a', '100'), quote('b', '110')], NOW),
    null,
    'two that are far apart agree on nothing',
  )
  assert.deepEqual(consensusPrice([quote('a', '100', 70_000), quote('b', '90', 301_000)], NOW), {
    price: usd('100'),
    at: NOW - 70_000,
    sources: ['a'],
  })
  assert.deepEqual(
    consensusPrice([quote('a', '100', -61_000)], NOW),
    null,
    'a time that is yet to come',
  )
  assert.equal(consensusPrice([], NOW), null)
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.bigInt(1n, 10n ** 18n), fc.integer({ min: 0, max: 400_000 })), {
        minLength: 1,
        maxLength: 6,
      }),
      (input) => {
        const quotes = input.map(([price, age], at) => ({
          source: `s${at}`,
          coin: 'BTC',
          price,
          at: NOW - age,
        }))
        const agreed = consensusPrice(quotes, NOW)
        if (!agreed) return
        const used = quotes
          .filter(({ source }) => agreed.sources.includes(source))
          .map(({ price }) => price)
        assert.ok(
          used.some((price) => price <= agreed.price) &&
            used.some((price) => price >= agreed.price),
        )
        if (quotes.some(({ at }) => NOW - at <= 60_000))
          assert.ok(
            quotes.every(
              ({ source, at }) => !agreed.sources.includes(source) || NOW - at <= 60_000,
            ),
          )
      },
    ),
  )
})

test('a price is used for five minutes without sources, and is then stale', async () => {
  let now = NOW
  const said: Record<string, string | null> = { a: '100', b: '101' }
  const source = (name: string): PriceSource => ({
    name,
    quotes: async () => {
      const text = said[name]
      if (!text) throw new SourceError('away')
      return [{ coin: 'BTC', price: usd(text), at: now }]
    },
  })
  const sources = ['a', 'b'].map(source) as [PriceSource, PriceSource]
  const prices = new Prices({
    sources,
    coins: ['BTC'],
    environment: { ...systemEnvironment(), now: () => now },
    log: { warn: () => undefined, info: () => undefined } as never,
    everyMs: 1000,
  })
  assert.equal(prices.price('BTC'), null)
  await prices.refresh(sources[0])
  await prices.refresh(sources[1])
  assert.deepEqual(prices.price('BTC'), {
    price: usd('100.5'),
    at: NOW,
    sources: ['a', 'b'],
    stale: false,
  })
  said['b'] = '150'
  now += 10_000
  await prices.refresh(sources[0])
  await prices.refresh(sources[1])
  // The price of the last moment of agreement: one source had just answered, and the other source's
  // quote was still fresh.
  const stored = { price: usd('100.5'), at: NOW + 10_000, sources: ['a', 'b'] }
  assert.deepEqual(prices.price('BTC'), { ...stored, stale: false })
  said['a'] = said['b'] = null
  await assert.rejects(prices.refresh(sources[0]), SourceError)
  now = NOW + 310_000
  assert.deepEqual(prices.price('BTC'), { ...stored, stale: false })
  now = NOW + 311_000
  assert.equal(prices.price('BTC')?.stale, true)
})

test('CoinGecko is queried with the ids of the asset registry, unless the setting replaces them', () => {
  const registry = loadRegistry('mainnet')
  const read = (setting: string) =>
    pricesInstallation(
      readSettings({ CUSTODY_NETWORK: 'mainnet', CUSTODY_COINGECKO_IDS: setting }).prices,
      null,
      registry,
    ).coinGeckoIds
  const ids = read('')
  for (const asset of registry.assets)
    assert.equal(ids[asset.ticker], registry.coins[asset.ticker]?.coingecko_id, asset.asset_name)
  assert.deepEqual(read('KLAY=kaia, USDC = usd-coin_2'), {
    ...ids,
    KLAY: 'kaia',
    USDC: 'usd-coin_2',
  })
  assert.throws(
    () => read('KLAI=kaia'),
    /^Error: CUSTODY_COINGECKO_IDS: coin KLAI does not exist; must be one of BTC, /,
  )
  for (const bad of ['KLAY', 'KLAY=', '=kaia', 'KLAY=Kaia'])
    assert.throws(() => read(bad), /CUSTODY_COINGECKO_IDS: ".*" is not COIN=id/, bad)
})
