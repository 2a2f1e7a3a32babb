import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { CustodyClient, CustodyError, JsonNumber, type CustodyClientOptions } from '../src/index.ts'
import { TestServer } from './server.ts'

const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
let server: TestServer
/** Waits asked for, instead of waiting. */
let waits: number[] = []

before(async () => { server = await TestServer.start(API_KEY, pair.publicKey) })
after(() => server.stop())

function client(options: Partial<CustodyClientOptions> = {}): CustodyClient {
  waits = []
  return new CustodyClient({
    baseUrl: server.url, apiKey: API_KEY, privateKey: pair.privateKey, random: () => 1,
    sleep: async (ms) => { waits.push(ms) }, ...options,
  })
}

const json = (value: unknown) => ({ body: JSON.stringify(value) })
const problem = (status: number, code: string, extra: object = {}) => ({
  status, body: JSON.stringify({ type: `urn:custody:error:${code.toLowerCase()}`, title: 'T', status, error: 'E', message: `${code} happened`, code, request_id: 'r-1', ...extra }),
})

async function failure(promise: Promise<unknown>): Promise<CustodyError> {
  const error = await promise.then(() => assert.fail('must fail'), (reason: unknown) => reason)
  assert.ok(error instanceof CustodyError, String(error))
  return error
}

test('each method calls its endpoint, signed', async () => {
  const custody = client()
  const calls: [() => Promise<unknown>, string, string, string][] = [
    [() => custody.assets(), 'GET', '/assets', ''],
    [() => custody.supportedAssets(), 'GET', '/dac/v1/supported-assets', ''],
    [() => custody.createWallet('BTC'), 'POST', '/dac/v1/create-wallet', '{"asset":"BTC"}'],
    [() => custody.wallets('USDT_ETH'), 'GET', '/dac/v1/wallets?asset=USDT_ETH', ''],
    [() => custody.createAddress('BTC'), 'POST', '/dac/v1/address', '{"asset":"BTC"}'],
    [() => custody.createAddress('BTC', 'Grüße'), 'POST', '/dac/v1/address', '{"asset":"BTC","label":"Grüße"}'],
    [() => custody.addresses('BTC'), 'GET', '/dac/v1/addresses?asset=BTC', ''],
    [() => custody.validateAddress('XRP', 'r…', '0'), 'POST', '/dac/v1/validate-address', '{"asset":"XRP","address":"r…","address_tag":"0"}'],
    [() => custody.transaction('a/b?c'), 'GET', '/dac/v1/transaction/a%2Fb%3Fc', ''],
    [() => custody.transactions(), 'GET', '/dac/v1/transactions', ''],
    [() => custody.transactions({ asset: 'BTC', memo: 'a b&c=d', page: 2, limit: 10, after: 0 }), 'GET', '/dac/v1/transactions?asset=BTC&memo=a+b%26c%3Dd&page=2&limit=10&after=0', ''],
    [() => custody.gasTanks(), 'GET', '/dac/v1/gas-tanks', ''],
    [() => custody.createTransaction({ asset: 'ETH', amount: '1.000000000000000001', destination_address: '0xabc' }), 'POST', '/dac/v1/transaction',
      '{"source_type":"INTERNAL","destination_type":"EXTERNAL","asset":"ETH","destination_address":"0xabc","amount":1.000000000000000001}'],
    [() => custody.createTransaction({ asset: 'ETH', amount: '1', destination_address: '0xabc', sequence_id: 's', memo: 'm', address_tag: 't', fee_rate: '0.5' }), 'POST', '/dac/v1/transaction',
      '{"source_type":"INTERNAL","destination_type":"EXTERNAL","asset":"ETH","destination_address":"0xabc","sequence_id":"s","memo":"m","address_tag":"t","amount":1,"fee_rate":0.5}'],
    [() => custody.gasTankEntries('ETH', { page: 2 }), 'GET', '/dac/v1/gas-tanks/ETH/entries?page=2', ''],
    [() => custody.speedUp('i', { fee_rate: '60.5' }), 'POST', '/dac/v1/transaction/i/speed-up', '{"fee_rate":60.5}'],
    [() => custody.speedUp('i'), 'POST', '/dac/v1/transaction/i/speed-up', '{}'],
    [() => custody.cancel('i'), 'POST', '/dac/v1/transaction/i/cancel', '{}'],
    [() => custody.networkFeeRates('USDT_ETH'), 'GET', '/dac/v1/network-fee-rates/USDT_ETH', ''],
    [() => custody.estimateFee('BTC', '5', { amount: '0.1' }), 'POST', '/dac/v1/estimate-fee', '{"asset":"BTC","fee_rate":5,"amount":0.1}'],
    [() => custody.prices(['BTC', 'ETH']), 'GET', '/dac/v1/prices?assets=BTC%2CETH', ''],
    [() => custody.prices(), 'GET', '/dac/v1/prices', ''],
    [() => custody.prepaidFee(), 'POST', '/dac/v1/prepaid-fee', '{}'],
    [() => custody.prepaidFeeEntries(), 'GET', '/dac/v1/prepaid-fee/entries', ''],
    [() => custody.amlSettings(), 'GET', '/dac/v1/aml', ''],
    [() => custody.saveAmlSettings({ provider: 'TRM', aml_token: 'k', aml_risk_levels: 'SEVERE', aml_deposit: true, aml_withdrawal: false }), 'POST', '/dac/v1/aml', '{"provider":"TRM","aml_token":"k","aml_risk_levels":"SEVERE","aml_deposit":true,"aml_withdrawal":false}'],
    [() => custody.frozenAddresses('ETH'), 'GET', '/dac/v1/frozen-addresses?asset=ETH', ''],
    [() => custody.unfreezeAddress('XRP', 'r…', '7'), 'POST', '/dac/v1/unfreeze-address', '{"asset":"XRP","address":"r…","address_tag":"7"}'],
    [() => custody.stake({ address: 'T…', resource: 'ENERGY', amount: '100.000001' }), 'POST', '/dav/v1/stake', '{"asset":"TRX","address":"T…","resource":"ENERGY","amount":100.000001}'],
    [() => custody.unstake({ address: 'T…', resource: 'ENERGY', amount: '1', sequence_id: 's' }), 'POST', '/dav/v1/unstake', '{"asset":"TRX","address":"T…","resource":"ENERGY","sequence_id":"s","amount":1}'],
    [() => custody.releaseUnstaked('T…'), 'POST', '/dav/v1/release-unstaked', '{"asset":"TRX","address":"T…"}'],
    [() => custody.staking('T'), 'GET', '/dav/v1/staking?address=T', ''],
    [() => custody.createForwardRule({ asset: 'BTC', min_amount: '0.1', destination_address: 'bc1…', daily_cap: '2', expires_at: '2030-01-01T00:00:00Z' }), 'POST', '/dac/v1/auto-forwarding',
      '{"asset":"BTC","min_amount":0.1,"destination_address":"bc1…","daily_cap":2,"expires_at":"2030-01-01T00:00:00Z"}'],
    [() => custody.forwardRules({ asset: 'BTC' }), 'GET', '/dac/v1/auto-forwarding?asset=BTC', ''],
    [() => custody.forwardRule('i'), 'GET', '/dac/v1/auto-forwarding/i', ''],
    [() => custody.pauseForwardRule('i'), 'POST', '/dac/v1/auto-forwarding/i/pause', ''],
    [() => custody.resumeForwardRule('i'), 'POST', '/dac/v1/auto-forwarding/i/resume', ''],
    [() => custody.deleteForwardRule('i'), 'DELETE', '/dac/v1/auto-forwarding/i', '{}'],
    [() => custody.invoices.create({ fiat: 'USD', fiat_amount: '25.50', assets: ['BTC'], tolerance: '0.5', expires_in: 60 }), 'POST', '/dac/v1/invoices',
      '{"fiat":"USD","assets":["BTC"],"expires_in":60,"fiat_amount":25.50,"tolerance":0.5}'],
    [() => custody.invoices.create({ asset: 'BTC', amount: '0.1', sequence_id: 's' }), 'POST', '/dac/v1/invoices', '{"asset":"BTC","sequence_id":"s","amount":0.1}'],
    [() => custody.invoices.read('i'), 'GET', '/dac/v1/invoices/i', ''],
    [() => custody.invoices.list({ status: 'Paid', from: 7 }), 'GET', '/dac/v1/invoices?status=Paid&from=7', ''],
    [() => custody.invoices.cancel('i'), 'POST', '/dac/v1/invoices/i/cancel', '{}'],
    [() => custody.invoices.mark('i', 'settled', 'cash'), 'POST', '/dac/v1/invoices/i/mark', '{"status":"settled","reason":"cash"}'],
    [() => custody.invoices.refund('i', { asset: 'BTC', amount: '0.1', destination_address: 'bc1…' }), 'POST', '/dac/v1/invoices/i/refund',
      '{"source_type":"INTERNAL","destination_type":"EXTERNAL","asset":"BTC","destination_address":"bc1…","amount":0.1}'],
    [() => custody.invoices.settings(), 'GET', '/dac/v1/invoice-settings', ''],
    [() => custody.invoices.saveSettings({ confirmations: [{ from_usd: '500.5', confirmations: 6 }] }), 'PUT', '/dac/v1/invoice-settings', '{"confirmations":[{"from_usd":500.5,"confirmations":6}]}'],
    [() => custody.trading.exchanges(), 'GET', '/dac/v1/exchanges', ''],
    [() => custody.trading.link({ exchange: 'kraken', label: 'l', api_key: 'k', api_secret: 's' }), 'POST', '/dac/v1/exchange-accounts', '{"exchange":"kraken","label":"l","api_key":"k","api_secret":"s"}'],
    [() => custody.trading.accounts({ exchange: 'kraken' }), 'GET', '/dac/v1/exchange-accounts?exchange=kraken', ''],
    [() => custody.trading.account('a'), 'GET', '/dac/v1/exchange-accounts/a', ''],
    [() => custody.trading.test('a'), 'POST', '/dac/v1/exchange-accounts/a/test', '{}'],
    [() => custody.trading.change('a', { label: 'm' }), 'PATCH', '/dac/v1/exchange-accounts/a', '{"label":"m"}'],
    [() => custody.trading.unlink('a'), 'DELETE', '/dac/v1/exchange-accounts/a', ''],
    [() => custody.trading.markets('kraken', { base: 'BTC' }), 'GET', '/dac/v1/markets?exchange=kraken&base=BTC', ''],
    [() => custody.trading.ticker('kraken', 'BTC/USD'), 'GET', '/dac/v1/ticker?exchange=kraken&market=BTC%2FUSD', ''],
    [() => custody.trading.depositAddress('a', 'BTC'), 'GET', '/dac/v1/exchange-accounts/a/deposit-address?asset=BTC', ''],
    [() => custody.trading.withdraw({ exchange_account: 'a', asset: 'BTC', amount: '0.5', sequence_id: 's' }), 'POST', '/dac/v1/exchange-withdrawals', '{"exchange_account":"a","asset":"BTC","sequence_id":"s","amount":0.5}'],
    [() => custody.trading.transfer('t'), 'GET', '/dac/v1/exchange-transfers/t', ''],
    [() => custody.trading.transfers({ direction: 'to_exchange' }), 'GET', '/dac/v1/exchange-transfers?direction=to_exchange', ''],
    [() => custody.trading.quote({ from_asset: 'BTC', to_asset: 'USD', amount: '1' }), 'POST', '/dac/v1/conversions/quote', '{"from_asset":"BTC","to_asset":"USD","amount":1}'],
    [() => custody.trading.convert({ quote: 'q' }), 'POST', '/dac/v1/conversions', '{"quote":"q"}'],
    [() => custody.trading.convert({ from_asset: 'BTC', to_asset: 'USD', amount: '1', sequence_id: 's' }), 'POST', '/dac/v1/conversions', '{"from_asset":"BTC","to_asset":"USD","sequence_id":"s","amount":1}'],
    [() => custody.trading.conversion('c'), 'GET', '/dac/v1/conversions/c', ''],
    [() => custody.trading.orderBook('kraken', 'BTC/USD', 5), 'GET', '/dac/v1/orderbook?exchange=kraken&market=BTC%2FUSD&depth=5', ''],
    [() => custody.trading.order({ exchange_account: 'a', market: 'BTC/USD', side: 'buy', type: 'limit', amount: '0.10', price: '60000.5', sequence_id: 's' }), 'POST', '/dac/v1/orders',
      '{"exchange_account":"a","market":"BTC/USD","side":"buy","type":"limit","sequence_id":"s","amount":0.10,"price":60000.5}'],
    [() => custody.trading.readOrder('o'), 'GET', '/dac/v1/orders/o', ''],
    [() => custody.trading.orders({ status: 'open', page: 2 }), 'GET', '/dac/v1/orders?status=open&page=2', ''],
    [() => custody.trading.cancel('o'), 'POST', '/dac/v1/orders/o/cancel', '{}'],
    [() => custody.forwards('i', { limit: 5 }), 'GET', '/dac/v1/auto-forwarding/i/history?limit=5', ''],
    [() => custody.request('post', '/dac/v1/prepaid-fee', {}), 'POST', '/dac/v1/prepaid-fee', '{}'],
    [() => custody.request('POST', '/dav/v1/stake', { amount: new JsonNumber('100.000001') }), 'POST', '/dav/v1/stake', '{"amount":100.000001}'],
  ]
  for (const [call, method, url, body] of calls) {
    server.script(json([]))
    await call()
    const [seen] = server.seen
    assert.deepEqual([seen?.method, seen?.url, seen?.body], [method, url, body])
    assert.equal(server.seen.length, 1)
    if (url === '/assets') assert.equal(seen?.headers.authorization, undefined)
    else assert.equal(seen?.claims?.uri, url)
  }
})

test('amounts come as exact decimal strings, counts as numbers', async () => {
  server.script({ body: '[{"id":"w","balance":0.100000000000000001,"omnibus_balance":123456789012345678901234567890,"status":"active"}]' })
  assert.deepEqual(await client().wallets('ETH'), [{ id: 'w', balance: '0.100000000000000001', omnibus_balance: '123456789012345678901234567890', status: 'active' }])
  server.script({ body: '{"data":[{"amount":20999999.9769,"fee":0.1,"confirmations":3}],"page":1,"limit":50,"total":1}' })
  assert.deepEqual(await client().transactions(), { data: [{ amount: '20999999.9769', fee: '0.1', confirmations: 3 }], page: 1, limit: 50, total: 1 })
})

test('amounts that are not decimal strings never leave', async () => {
  server.script()
  for (const amount of ['', '-1', '01', '1.', '.5', '1e3', '1,5', '0x10', ' 1', 'NaN', 1.5 as unknown as string]) {
    await assert.rejects(client().createTransaction({ asset: 'BTC', amount, destination_address: 'x' }), TypeError)
  }
  assert.equal(server.seen.length, 0)
})

test('paths that would leave the service never leave', async () => {
  for (const path of ['dac/v1/wallets', '//evil.example/x', 'http://evil.example/', '']) await assert.rejects(client().request('GET', path), TypeError)
})

test('what is signed is what is sent, in the spelling of the wire', async () => {
  for (const [path, url] of [['/dac/v1/x y', '/dac/v1/x%20y'], ['/dac/v1/../v1/ä', '/dac/v1/%C3%A4'], ['/dac/v1/a?b=ü#c', '/dac/v1/a?b=%C3%BC']] as const) {
    server.script(json({}))
    await client().request('GET', path)
    assert.equal(server.seen[0]?.claims?.uri, url)
    assert.equal(server.seen[0]?.url, url)
  }
})

test("a proxy's prefix is sent and not signed", async () => {
  const sent: string[] = []
  const custody = client({ baseUrl: 'https://proxy.example/custody/', fetch: async (url, init) => {
    sent.push(String(url))
    const token = new Headers(init?.headers).get('authorization')?.split('.')[1] as string
    sent.push((JSON.parse(Buffer.from(token, 'base64url').toString()) as { uri: string }).uri)
    return new Response('[]')
  } })
  await custody.gasTanks()
  assert.deepEqual(sent, ['https://proxy.example/custody/dac/v1/gas-tanks', '/dac/v1/gas-tanks'])
  assert.throws(() => client({ baseUrl: 'https://user:pass@host' }), TypeError)
  assert.throws(() => client({ baseUrl: 'https://host/?a=1' }), TypeError)
})

test('an error says status, code, field, message and request id', async () => {
  server.script(problem(400, 'INSUFFICIENT_BALANCE', { field: 'amount' }))
  const error = await failure(client().createTransaction({ asset: 'BTC', amount: '1', destination_address: 'x', sequence_id: 's' }))
  assert.deepEqual([error.status, error.code, error.field, error.message, error.requestId], [400, 'INSUFFICIENT_BALANCE', 'amount', 'INSUFFICIENT_BALANCE happened', 'r-1'])
  assert.equal(server.seen.length, 1)
})

test('a wrong key gets the claim that failed', async () => {
  const error = await failure(client({ privateKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }).gasTanks())
  assert.deepEqual([error.status, error.code, error.field], [401, 'UNAUTHORIZED', 'signature'])
})

test('an answer that is not of the service is an error, and is not repeated', async () => {
  server.script({ status: 200, body: '<html>hello</html>' })
  assert.equal((await failure(client().gasTanks())).code, 'PROTOCOL')
  server.script({ status: 404, body: '<html>nginx</html>', headers: { 'x-request-id': 'h-1' } })
  const error = await failure(client().gasTanks())
  assert.deepEqual([error.status, error.code, error.requestId], [404, 'HTTP', 'h-1'])
  assert.equal(server.seen.length, 1)
})

test('GET is repeated after 500, 502, 503, 504 and lost connections, with a new token and growing waits', async () => {
  server.script(problem(500, 'INTERNAL'), problem(503, 'UNAVAILABLE'), { cut: true }, { status: 502, body: '<html>' }, json([]))
  assert.deepEqual(await client().gasTanks(), [])
  assert.deepEqual(waits, [1000, 2000, 4000, 8000])
  assert.equal(new Set(server.seen.map((each) => each.claims?.nonce)).size, 5)
})

test('it gives up after the last attempt with the last error', async () => {
  server.script(problem(500, 'INTERNAL'), problem(500, 'INTERNAL'), problem(503, 'SIGNERS_UNAVAILABLE'), json([]))
  const error = await failure(client({ retry: { attemptsMax: 3 } }).gasTanks())
  assert.equal(error.code, 'SIGNERS_UNAVAILABLE')
  assert.equal(server.seen.length, 3)
  server.script(problem(500, 'INTERNAL'), json([]))
  await failure(client({ retry: { attemptsMax: 1 } }).gasTanks())
  assert.deepEqual(waits, [])
})

test('waits are bounded and half at random', async () => {
  server.script(...Array.from({ length: 9 }, () => problem(500, 'INTERNAL')), json([]))
  await client({ retry: { attemptsMax: 10 }, random: () => 0 }).gasTanks()
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
})

const TRANSFER = { asset: 'BTC', amount: '0.1', destination_address: 'bcrt1q' }

test('createTransaction is repeated with a sequence_id: same body, new token', async () => {
  server.script({ cut: true }, problem(500, 'INTERNAL'), json({ id: 't', status: 'pending' }))
  assert.equal((await client().createTransaction({ ...TRANSFER, sequence_id: 's-1' })).id, 't')
  assert.equal(server.seen.length, 3)
  assert.equal(new Set(server.seen.map((each) => each.body)).size, 1)
  assert.equal(new Set(server.seen.map((each) => each.claims?.nonce)).size, 3)
})

test('createTransaction without a sequence_id, and other writes, are never repeated', async () => {
  const custody = client()
  for (const call of [() => custody.createTransaction(TRANSFER), () => custody.createWallet('BTC'), () => custody.createAddress('BTC'), () => custody.request('POST', '/dac/v1/aml', {})]) {
    for (const [answer, code] of [[problem(500, 'INTERNAL'), 'INTERNAL'], [problem(503, 'UNAVAILABLE'), 'UNAVAILABLE'], [{ cut: true }, 'NETWORK']] as const) {
      server.script(answer, json({}))
      assert.equal((await failure(call())).code, code)
      assert.equal(server.seen.length, 1)
    }
  }
})

test('429 waits for the end of the window by the service’s clock, whatever the method', async () => {
  // The service lives ten years ahead of this machine.
  const limited = { ...problem(429, 'RATE_LIMITED'), headers: { date: 'Fri, 20 Nov 2037 16:59:40 GMT', 'x-rate-limit-reset': '2037-11-20T17:00:00.000Z', 'retry-after': '20' } }
  server.script(limited, json({ id: 't' }))
  await client().createTransaction(TRANSFER)
  assert.deepEqual(waits, [20_250])
  server.script(limited, limited, json([]))
  await client().gasTanks()
  assert.equal(waits.length, 2)
})

test('429: a senseless reset is bounded, and the option turns waiting off', async () => {
  server.script({ ...problem(429, 'RATE_LIMITED'), headers: { 'x-rate-limit-reset': '2999-01-01T00:00:00.000Z' } }, json([]))
  await client().gasTanks()
  assert.deepEqual(waits, [61_250])
  server.script({ ...problem(429, 'RATE_LIMITED'), headers: { 'x-rate-limit-reset': 'soon' } }, json([]))
  await client().gasTanks()
  assert.deepEqual(waits, [60_250])
  server.script(problem(429, 'RATE_LIMITED'), json([]))
  assert.equal((await failure(client({ waitOnRateLimit: false }).gasTanks())).status, 429)
  server.script(...Array.from({ length: 9 }, () => problem(429, 'RATE_LIMITED')))
  assert.equal((await failure(client().gasTanks())).status, 429)
  assert.equal(server.seen.length, 6)
})

test('a service that does not answer in time', async () => {
  server.script({ hang: true }, { hang: true })
  const error = await failure(client({ timeout_ms: 100, retry: { attemptsMax: 2 } }).gasTanks())
  assert.deepEqual([error.status, error.code], [0, 'NETWORK'])
  assert.match(error.message, /no answer within 100 ms/)
})

test('redirects are not followed: the token is for this service', async () => {
  server.script({ status: 307, headers: { location: '/dac/v1/elsewhere' } })
  assert.equal((await failure(client({ retry: { attemptsMax: 1 } }).gasTanks())).code, 'NETWORK')
  assert.equal(server.seen.length, 1)
})

test('waitForTransaction answers the terminal state, confirmed or failed', async () => {
  server.script(json({ id: 't', status: 'pending', sub_status: 'CREATED' }), problem(503, 'UNAVAILABLE'), json({ id: 't', status: 'pending', sub_status: 'CONFIRMING' }), json({ id: 't', status: 'confirmed' }))
  assert.equal((await client().waitForTransaction('t')).status, 'confirmed')
  assert.deepEqual(waits, [2000, 1000, 2000])
  server.script(json({ id: 't', status: 'failed' }))
  assert.equal((await client().waitForTransaction('t')).status, 'failed')
  server.script(problem(404, 'NOT_FOUND'))
  assert.equal((await failure(client().waitForTransaction('t'))).code, 'NOT_FOUND')
})

test('waitForTransaction ends at its time', async () => {
  const custody = client({ sleep: async () => {} })
  server.script(...Array.from({ length: 10 }, () => json({ id: 't', status: 'pending', sub_status: 'SIGNING' })))
  const error = await failure(custody.waitForTransaction('t', { timeout_ms: 50, interval_ms: 100 }))
  assert.equal(error.code, 'TIMEOUT')
  assert.match(error.message, /SIGNING/)
  assert.equal(server.seen.length, 1)
})

test('the private key shows in nothing that is printed', () => {
  assert.doesNotMatch(JSON.stringify(client()), /PRIVATE|privateKey/)
})
