import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

const home = tempHome()
let devnet: Running

before(async () => {
  process.env['CUSTODY_COINGECKO_IDS'] = 'KLAY=kaia-renamed'
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

interface Price {
  usd: number
  last_updated_at: number
}
interface Book {
  a: string[]
  b: string[]
  c: string[]
  altname: string
  wsname: string
}
/** The fields of both protocols that these tests look at. */
type Body = Record<string, Price> & { error: string[]; result: Record<string, Book> }
interface Answer {
  status: number
  body: Body
  text: string
}
async function ask(path: string): Promise<Answer> {
  const response = await fetch(
    `${devnet.url}${path.startsWith('/kraken') ? '/exchanges' : '/prices'}${path}`,
  )
  const text = await response.text()
  return {
    status: response.status,
    text,
    body: (text.startsWith('<') ? {} : JSON.parse(text)) as Body,
  }
}
const SIMPLE = '/coingecko/simple/price?vs_currencies=usd&include_last_updated_at=true'
const fault = (network: string, mode: string) => devnet.control({ command: 'fault', network, mode })

test('CoinGecko: returns prices by id with their time, and omits unknown ids', async () => {
  const begun = Math.floor(Date.now() / 1000)
  const { status, body } = await ask(`${SIMPLE}&ids=bitcoin,tether,nonsense`)
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(body), ['bitcoin', 'tether'])
  assert.deepEqual([body['bitcoin']?.usd, body['tether']?.usd], [60_000, 1.0003])
  const updated = Number(body['bitcoin']?.last_updated_at)
  assert.ok(begun <= updated && updated <= Date.now() / 1000)
  // Prices can also be requested by an id that the installation configures for the coin.
  assert.deepEqual(Object.keys((await ask(`${SIMPLE}&ids=kaia,kaia-renamed`)).body), [
    'kaia',
    'kaia-renamed',
  ])
  assert.equal((await ask('/coingecko/simple/price?ids=bitcoin')).status, 422)
  assert.equal((await ask('/coingecko/elsewhere')).status, 404)
})

test('Kraken: returns assets, pairs and tickers by its own names; an unknown pair is an error', async () => {
  assert.equal((await ask('/kraken/0/public/Assets')).body.result['XXBT']?.altname, 'XBT')
  assert.equal(
    (await ask('/kraken/0/public/AssetPairs')).body.result['XXBTZUSD']?.wsname,
    'XBT/USD',
  )
  const { body } = await ask('/kraken/0/public/Ticker?pair=XXBTZUSD,XDGUSD')
  assert.deepEqual(body.error, [])
  assert.deepEqual(
    [
      Number(body.result['XXBTZUSD']?.b[0]),
      Number(body.result['XXBTZUSD']?.c[0]),
      Number(body.result['XXBTZUSD']?.a[0]),
    ],
    [59_994, 60_000, 60_006],
  )
  assert.deepEqual((await ask('/kraken/0/public/Ticker?pair=XXBTZUSD,NONEUSD')).body, {
    error: ['EQuery:Unknown asset pair'],
  })
})

test('a price set by the operator, at one source or all, survives a restart; a fault does not', async () => {
  await devnet.control({ command: 'price', coin: 'BTC', price: '65000.5' })
  await devnet.control({ command: 'price', coin: 'ETH', price: '2500', source: 'KRAKEN' })
  for (const bad of [
    { coin: 'NONE', price: '1' },
    { coin: 'BTC', price: '0' },
    { coin: 'BTC', price: '-1' },
    { coin: 'BTC', price: '1', source: 'X' },
  ]) {
    assert.equal(
      (await devnet.rawControl(JSON.stringify({ command: 'price', ...bad }))).status,
      400,
    )
  }
  await fault('PRICES', 'down')
  await assert.rejects(ask(`${SIMPLE}&ids=bitcoin`))
  await assert.rejects(ask('/kraken/0/public/Assets'))
  assert.equal(
    (
      await devnet.rawControl(
        JSON.stringify({ command: 'fault', network: 'KRAKEN', mode: 'nonsense' }),
      )
    ).status,
    400,
  )
  await devnet.stop()
  devnet = await startDevnet(home)
  const { body } = await ask(`${SIMPLE}&ids=bitcoin,ethereum`)
  assert.deepEqual([body['bitcoin']?.usd, body['ethereum']?.usd], [65_000.5, 3000])
  assert.equal(
    Number((await ask('/kraken/0/public/Ticker?pair=XETHZUSD')).body.result['XETHZUSD']?.c[0]),
    2500,
  )
})

test('simulates an old price, a closed exchange, an HTML page, and a rate limit', async () => {
  await fault('PRICES', 'stale')
  assert.ok(
    Date.now() / 1000 -
      Number((await ask(`${SIMPLE}&ids=bitcoin`)).body['bitcoin']?.last_updated_at) >
      500,
  )
  assert.deepEqual((await ask('/kraken/0/public/Ticker')).body, { error: ['EService:Unavailable'] })
  await fault('COINGECKO', 'malformed')
  assert.match((await ask(`${SIMPLE}&ids=bitcoin`)).text, /html/)
  await fault('COINGECKO', 'rate-limited')
  assert.equal((await ask(`${SIMPLE}&ids=bitcoin`)).status, 429)
  await fault('PRICES', 'heal')
  assert.equal((await ask(`${SIMPLE}&ids=bitcoin`)).status, 200)
})
