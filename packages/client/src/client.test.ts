import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { CustodyClient, CustodyError, JsonNumber, type CustodyClientOptions } from './index.ts'
import { COUNTS } from './wire.ts'
import { isOpen, TestServer } from '../testing/server.ts'

/** Fields of a signed statement. */
const SIGNER = { by: 'bob', key: 'k1', at: 1, expires: 2, signature: 's' }
const SIGNER_TEXT = '"by":"bob","key":"k1","at":1,"expires":2,"signature":"s"'

interface Typed {
  type?: string | string[]
  format?: string
  items?: Typed
  anyOf?: Typed[]
}
const DOCUMENT_TEXT = readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8')
const DOCUMENT = JSON.parse(DOCUMENT_TEXT) as {
  paths: Record<string, Record<string, { operationId: string }>>
  webhooks: object
  components: { schemas: Record<string, object> }
}
const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({
    operationId,
    method: method.toUpperCase(),
    path,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  })),
)
/** Returns the operation of a request; if several match, the one with the fewest parameters. */
const operationOf = (method: string, url: string): string | undefined =>
  OPERATIONS.filter(
    (each) => each.method === method && each.pattern.test(url.split('?', 1)[0] as string),
  ).sort((a, b) => a.path.split('{').length - b.path.split('{').length)[0]?.operationId

const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
let server: TestServer
/** Recorded waiting times; the test does not wait. */
let waits: number[] = []

before(async () => {
  server = await TestServer.start(API_KEY, pair.publicKey)
})
after(() => server.stop())

function client(options: Partial<CustodyClientOptions> = {}): CustodyClient {
  waits = []
  return new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    random: () => 1,
    sleep: async (ms) => {
      waits.push(ms)
    },
    ...options,
  })
}

const json = (value: unknown) => ({ body: JSON.stringify(value) })
const problem = (status: number, code: string, extra: object = {}) => ({
  status,
  body: JSON.stringify({
    type: `https://custody.example/reference/errors#${code}`,
    title: 'T',
    status,
    error: 'E',
    message: `${code} happened`,
    code,
    request_id: 'r-1',
    ...extra,
  }),
})

async function failure(promise: Promise<unknown>): Promise<CustodyError> {
  const error = await promise.then(
    () => assert.fail('must fail'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof CustodyError, String(error))
  return error
}

test('each method sends a signed request to its endpoint, and each API operation has a method', async () => {
  const custody = client()
  const calls: [() => Promise<unknown>, string, string, string][] = [
    [() => custody.assets(), 'GET', '/assets', ''],
    [() => custody.supportedAssets(), 'GET', '/dac/v1/supported-assets', ''],
    [() => custody.createWallet('BTC'), 'POST', '/dac/v1/create-wallet', '{"asset":"BTC"}'],
    [() => custody.wallets('USDT_ETH'), 'GET', '/dac/v1/wallets?asset=USDT_ETH', ''],
    [
      () => custody.balances({ after: 'BTC', limit: 5 }),
      'GET',
      '/dac/v1/balances?after=BTC&limit=5',
      '',
    ],
    [
      () => custody.addressPage('BTC', { limit: 5 }),
      'GET',
      '/dac/v1/addresses?asset=BTC&limit=5',
      '',
    ],
    [
      () => custody.coins({ asset: 'BTC', state: 'frozen', limit: 5 }),
      'GET',
      '/dac/v1/coins?asset=BTC&state=frozen&limit=5',
      '',
    ],
    [
      () => custody.updateCoin('BTC-ab-0', { label: null, frozen: true }),
      'POST',
      '/dac/v1/coins/BTC-ab-0',
      '{"label":null,"frozen":true}',
    ],
    [
      () =>
        custody.consolidate('0b9d4f6e-6a55-4a5c-9b5e-2d5f2f1f7c11', {
          asset: 'BTC',
          max_fee_rate: '3.5',
          target_coins: 50,
          sequence_id: 's',
        }),
      'POST',
      '/dac/v1/wallets/0b9d4f6e-6a55-4a5c-9b5e-2d5f2f1f7c11/consolidate',
      '{"asset":"BTC","target_coins":50,"sequence_id":"s","max_fee_rate":3.5}',
    ],
    [
      () => custody.coinsAside({ asset: 'BCH', limit: 5 }),
      'GET',
      '/dac/v1/coins-aside?asset=BCH&limit=5',
      '',
    ],
    [
      () => custody.statement({ asset: 'ETH', from: 1, to: 2, limit: 5 }),
      'GET',
      '/dac/v1/statement?asset=ETH&from=1&to=2&limit=5',
      '',
    ],
    [
      () => custody.statementCsv({ asset: 'ETH', account: 'gas_tank' }),
      'GET',
      '/dac/v1/statement/export?asset=ETH&account=gas_tank',
      '',
    ],
    [() => custody.createAddress('BTC'), 'POST', '/dac/v1/address', '{"asset":"BTC"}'],
    [
      () => custody.createAddress('BTC', 'Grüße'),
      'POST',
      '/dac/v1/address',
      '{"asset":"BTC","label":"Grüße"}',
    ],
    [() => custody.addresses('BTC'), 'GET', '/dac/v1/addresses?asset=BTC', ''],
    [
      () => custody.validateAddress('XRP', 'r…', '0'),
      'POST',
      '/dac/v1/validate-address',
      '{"asset":"XRP","address":"r…","address_tag":"0"}',
    ],
    [() => custody.transaction('a/b?c'), 'GET', '/dac/v1/transaction/a%2Fb%3Fc', ''],
    [() => custody.transactions(), 'GET', '/dac/v1/transactions', ''],
    [
      () => custody.transactions({ asset: 'BTC', memo: 'a b&c=d', page: 2, limit: 10, after: 0 }),
      'GET',
      '/dac/v1/transactions?asset=BTC&memo=a+b%26c%3Dd&page=2&limit=10&after=0',
      '',
    ],
    [() => custody.gasTanks(), 'GET', '/dac/v1/gas-tanks', ''],
    [
      () =>
        custody.createTransaction({
          asset: 'ETH',
          amount: '1.000000000000000001',
          destination_address: '0xabc',
        }),
      'POST',
      '/dac/v1/transaction',
      '{"source_type":"INTERNAL","destination_type":"EXTERNAL","asset":"ETH","destination_address":"0xabc","amount":1.000000000000000001}',
    ],
    [
      () =>
        custody.createTransaction({
          asset: 'ETH',
          amount: '1',
          destination_address: '0xabc',
          sequence_id: 's',
          memo: 'm',
          address_tag: 't',
          fee_rate: '0.5',
        }),
      'POST',
      '/dac/v1/transaction',
      '{"source_type":"INTERNAL","destination_type":"EXTERNAL","asset":"ETH","destination_address":"0xabc","sequence_id":"s","memo":"m","address_tag":"t","amount":1,"fee_rate":0.5}',
    ],
    [
      () => custody.gasTankEntries('ETH', { page: 2 }),
      'GET',
      '/dac/v1/gas-tanks/ETH/entries?page=2',
      '',
    ],
    [
      () => custody.speedUp('i', { fee_rate: '60.5' }),
      'POST',
      '/dac/v1/transaction/i/speed-up',
      '{"fee_rate":60.5}',
    ],
    [() => custody.speedUp('i'), 'POST', '/dac/v1/transaction/i/speed-up', '{}'],
    [() => custody.cancel('i'), 'POST', '/dac/v1/transaction/i/cancel', '{}'],
    [() => custody.networkFeeRates('USDT_ETH'), 'GET', '/dac/v1/network-fee-rates/USDT_ETH', ''],
    [
      () => custody.estimateFee('BTC', '5', { amount: '0.1' }),
      'POST',
      '/dac/v1/estimate-fee',
      '{"asset":"BTC","fee_rate":5,"amount":0.1}',
    ],
    [() => custody.prices(['BTC', 'ETH']), 'GET', '/dac/v1/prices?assets=BTC%2CETH', ''],
    [() => custody.prices(), 'GET', '/dac/v1/prices', ''],
    [() => custody.prepaidFee(), 'POST', '/dac/v1/prepaid-fee', '{}'],
    [() => custody.prepaidFeeEntries(), 'GET', '/dac/v1/prepaid-fee/entries', ''],
    [() => custody.amlSettings(), 'GET', '/dac/v1/aml', ''],
    [
      () =>
        custody.saveAmlSettings({
          provider: 'TRM',
          aml_token: 'k',
          aml_risk_levels: 'SEVERE',
          aml_deposit: true,
          aml_withdrawal: false,
        }),
      'POST',
      '/dac/v1/aml',
      '{"provider":"TRM","aml_token":"k","aml_risk_levels":"SEVERE","aml_deposit":true,"aml_withdrawal":false}',
    ],
    [() => custody.frozenAddresses('ETH'), 'GET', '/dac/v1/frozen-addresses?asset=ETH', ''],
    [
      () => custody.unfreezeAddress('XRP', 'r…', '7'),
      'POST',
      '/dac/v1/unfreeze-address',
      '{"asset":"XRP","address":"r…","address_tag":"7"}',
    ],
    [
      () => custody.stake({ address: 'T…', resource: 'ENERGY', amount: '100.000001' }),
      'POST',
      '/dav/v1/stake',
      '{"asset":"TRX","address":"T…","resource":"ENERGY","amount":100.000001}',
    ],
    [
      () => custody.unstake({ address: 'T…', resource: 'ENERGY', amount: '1', sequence_id: 's' }),
      'POST',
      '/dav/v1/unstake',
      '{"asset":"TRX","address":"T…","resource":"ENERGY","sequence_id":"s","amount":1}',
    ],
    [
      () => custody.releaseUnstaked('T…'),
      'POST',
      '/dav/v1/release-unstaked',
      '{"asset":"TRX","address":"T…"}',
    ],
    [() => custody.staking('T'), 'GET', '/dav/v1/staking?address=T', ''],
    [
      () =>
        custody.createForwardRule({
          asset: 'BTC',
          min_amount: '0.1',
          destination_address: 'bc1…',
          daily_cap: '2',
          expires_at: '2030-01-01T00:00:00Z',
        }),
      'POST',
      '/dac/v1/auto-forwarding',
      '{"asset":"BTC","destination_address":"bc1…","expires_at":"2030-01-01T00:00:00Z","min_amount":0.1,"daily_cap":2}',
    ],
    [() => custody.forwardRules({ asset: 'BTC' }), 'GET', '/dac/v1/auto-forwarding?asset=BTC', ''],
    [() => custody.forwardRule('i'), 'GET', '/dac/v1/auto-forwarding/i', ''],
    [() => custody.pauseForwardRule('i'), 'POST', '/dac/v1/auto-forwarding/i/pause', ''],
    [() => custody.resumeForwardRule('i'), 'POST', '/dac/v1/auto-forwarding/i/resume', ''],
    [() => custody.deleteForwardRule('i'), 'DELETE', '/dac/v1/auto-forwarding/i', '{}'],
    [
      () =>
        custody.invoices.create({
          fiat: 'USD',
          fiat_amount: '25.50',
          assets: ['BTC'],
          tolerance: '0.5',
          expires_in: 60,
        }),
      'POST',
      '/dac/v1/invoices',
      '{"fiat":"USD","assets":["BTC"],"expires_in":60,"fiat_amount":25.50,"tolerance":0.5}',
    ],
    [
      () => custody.invoices.create({ asset: 'BTC', amount: '0.1', sequence_id: 's' }),
      'POST',
      '/dac/v1/invoices',
      '{"asset":"BTC","sequence_id":"s","amount":0.1}',
    ],
    [() => custody.invoices.read('i'), 'GET', '/dac/v1/invoices/i', ''],
    [
      () => custody.invoices.list({ status: 'Paid', from: 7 }),
      'GET',
      '/dac/v1/invoices?status=Paid&from=7',
      '',
    ],
    [() => custody.invoices.cancel('i'), 'POST', '/dac/v1/invoices/i/cancel', '{}'],
    [
      () => custody.invoices.mark('i', 'settled', 'cash'),
      'POST',
      '/dac/v1/invoices/i/mark',
      '{"status":"settled","reason":"cash"}',
    ],
    [
      () =>
        custody.invoices.refund('i', { asset: 'BTC', amount: '0.1', destination_address: 'bc1…' }),
      'POST',
      '/dac/v1/invoices/i/refund',
      '{"source_type":"INTERNAL","destination_type":"EXTERNAL","asset":"BTC","destination_address":"bc1…","amount":0.1}',
    ],
    [() => custody.invoices.settings(), 'GET', '/dac/v1/invoice-settings', ''],
    [
      () =>
        custody.invoices.saveSettings({ confirmations: [{ from_usd: '500.5', confirmations: 6 }] }),
      'PUT',
      '/dac/v1/invoice-settings',
      '{"confirmations":[{"confirmations":6,"from_usd":500.5}]}',
    ],
    [() => custody.trading.exchanges(), 'GET', '/dac/v1/exchanges', ''],
    [
      () => custody.trading.link({ exchange: 'kraken', label: 'l', api_key: 'k', api_secret: 's' }),
      'POST',
      '/dac/v1/exchange-accounts',
      '{"exchange":"kraken","label":"l","api_key":"k","api_secret":"s"}',
    ],
    [
      () => custody.trading.accounts({ exchange: 'kraken' }),
      'GET',
      '/dac/v1/exchange-accounts?exchange=kraken',
      '',
    ],
    [() => custody.trading.account('a'), 'GET', '/dac/v1/exchange-accounts/a', ''],
    [() => custody.trading.test('a'), 'POST', '/dac/v1/exchange-accounts/a/test', '{}'],
    [
      () => custody.trading.change('a', { label: 'm' }),
      'PATCH',
      '/dac/v1/exchange-accounts/a',
      '{"label":"m"}',
    ],
    [() => custody.trading.unlink('a'), 'DELETE', '/dac/v1/exchange-accounts/a', '{}'],
    [
      () => custody.trading.markets('kraken', { base: 'BTC' }),
      'GET',
      '/dac/v1/markets?exchange=kraken&base=BTC',
      '',
    ],
    [
      () => custody.trading.ticker('kraken', 'BTC/USD'),
      'GET',
      '/dac/v1/ticker?exchange=kraken&market=BTC%2FUSD',
      '',
    ],
    [
      () => custody.trading.depositAddress('a', 'BTC'),
      'GET',
      '/dac/v1/exchange-accounts/a/deposit-address?asset=BTC',
      '',
    ],
    [
      () =>
        custody.trading.withdraw({
          exchange_account: 'a',
          asset: 'BTC',
          amount: '0.5',
          sequence_id: 's',
        }),
      'POST',
      '/dac/v1/exchange-withdrawals',
      '{"exchange_account":"a","asset":"BTC","sequence_id":"s","amount":0.5}',
    ],
    [() => custody.trading.transfer('t'), 'GET', '/dac/v1/exchange-transfers/t', ''],
    [
      () => custody.trading.transfers({ direction: 'to_exchange' }),
      'GET',
      '/dac/v1/exchange-transfers?direction=to_exchange',
      '',
    ],
    [
      () => custody.trading.quote({ from_asset: 'BTC', to_asset: 'USD', amount: '1' }),
      'POST',
      '/dac/v1/conversions/quote',
      '{"from_asset":"BTC","to_asset":"USD","amount":1}',
    ],
    [() => custody.trading.convert({ quote: 'q' }), 'POST', '/dac/v1/conversions', '{"quote":"q"}'],
    [
      () =>
        custody.trading.convert({
          from_asset: 'BTC',
          to_asset: 'USD',
          amount: '1',
          sequence_id: 's',
        }),
      'POST',
      '/dac/v1/conversions',
      '{"from_asset":"BTC","to_asset":"USD","sequence_id":"s","amount":1}',
    ],
    [() => custody.trading.conversion('c'), 'GET', '/dac/v1/conversions/c', ''],
    [
      () => custody.trading.orderBook('kraken', 'BTC/USD', 5),
      'GET',
      '/dac/v1/orderbook?exchange=kraken&market=BTC%2FUSD&depth=5',
      '',
    ],
    [
      () =>
        custody.trading.order({
          exchange_account: 'a',
          market: 'BTC/USD',
          side: 'buy',
          type: 'limit',
          amount: '0.10',
          price: '60000.5',
          sequence_id: 's',
        }),
      'POST',
      '/dac/v1/orders',
      '{"exchange_account":"a","market":"BTC/USD","side":"buy","type":"limit","sequence_id":"s","amount":0.10,"price":60000.5}',
    ],
    [() => custody.trading.readOrder('o'), 'GET', '/dac/v1/orders/o', ''],
    [
      () => custody.trading.orders({ status: 'open', page: 2 }),
      'GET',
      '/dac/v1/orders?status=open&page=2',
      '',
    ],
    [() => custody.trading.cancel('o'), 'POST', '/dac/v1/orders/o/cancel', '{}'],
    [
      () => custody.forwards('i', { limit: 5 }),
      'GET',
      '/dac/v1/auto-forwarding/i/history?limit=5',
      '',
    ],
    [() => custody.keys(), 'GET', '/dac/v1/keys', ''],
    [
      () => custody.events.list({ type: 'deposit.*', limit: 5 }),
      'GET',
      '/dac/v1/events?type=deposit.*&limit=5',
      '',
    ],
    [
      () => custody.webhooks.create({ url: 'https://a.example', events: ['*'] }),
      'POST',
      '/dac/v1/webhooks',
      '{"url":"https://a.example","events":["*"]}',
    ],
    [() => custody.webhooks.list(), 'GET', '/dac/v1/webhooks', ''],
    [() => custody.webhooks.read('w'), 'GET', '/dac/v1/webhooks/w', ''],
    [
      () => custody.webhooks.change('w', { disabled: false }),
      'PATCH',
      '/dac/v1/webhooks/w',
      '{"disabled":false}',
    ],
    [() => custody.webhooks.delete('w'), 'DELETE', '/dac/v1/webhooks/w', '{}'],
    [
      () => custody.webhooks.rotate('w', { overlap_s: 60 }),
      'POST',
      '/dac/v1/webhooks/w/rotate',
      '{"overlap_s":60}',
    ],
    [() => custody.webhooks.test('w'), 'POST', '/dac/v1/webhooks/w/test', ''],
    [
      () => custody.webhooks.deliveries('w', { status: 'failed' }),
      'GET',
      '/dac/v1/webhooks/w/deliveries?status=failed',
      '',
    ],
    [() => custody.webhooks.resend('d'), 'POST', '/dac/v1/webhooks/deliveries/d/resend', ''],
    [() => custody.webhooks.resend('d', 'w'), 'POST', '/dac/v1/webhooks/w/deliveries/d/resend', ''],
    [() => custody.webhooks.publicKeyPem(), 'GET', '/.well-known/custody-webhook-key.pem', ''],
    [() => custody.webhooks.publicKeys(), 'GET', '/.well-known/custody-webhook-keys.json', ''],
    [() => custody.checkout.read('v'), 'GET', '/checkout/v/state', ''],
    [() => custody.checkout.choose('v', 'BTC'), 'POST', '/checkout/v/asset', '{"asset":"BTC"}'],
    [
      () => custody.approvals.list({ state: 'open', limit: 2 }),
      'GET',
      '/dac/v1/approvals?state=open&limit=2',
      '',
    ],
    [() => custody.approvals.read('t'), 'GET', '/dac/v1/approvals/t', ''],
    [
      () =>
        custody.approvals.give('t', {
          by: 'bob',
          key: 'k1',
          decision: 'approve',
          at: 1,
          expires: 2,
          signature: 's',
        }),
      'POST',
      '/dac/v1/approvals/t',
      '{"by":"bob","key":"k1","decision":"approve","at":1,"expires":2,"signature":"s"}',
    ],
    [() => custody.policy.read(), 'GET', '/dac/v1/policy', ''],
    [() => custody.policy.windows(), 'GET', '/dac/v1/policy/windows', ''],
    [
      () => custody.policy.versions({ after: 3, limit: 2 }),
      'GET',
      '/dac/v1/policy/versions?after=3&limit=2',
      '',
    ],
    [
      () =>
        custody.policy.evaluate({
          method: 'POST',
          uri: '/dac/v1/transaction',
          body: { asset: 'ETH', amount: '0.7' },
        }),
      'POST',
      '/dac/v1/policy/evaluate',
      '{"method":"POST","uri":"/dac/v1/transaction","body":{"asset":"ETH","amount":"0.7"}}',
    ],
    [
      () => custody.policy.simulate({ document: { v: 1 } as never, last: 5 }),
      'POST',
      '/dac/v1/policy/simulate',
      '{"document":{"v":1},"last":5}',
    ],
    [
      () => custody.policy.propose({ document: { v: 1 } as never, comment: 'why' }),
      'POST',
      '/dac/v1/policy/changes',
      '{"document":{"v":1},"comment":"why"}',
    ],
    [
      () => custody.policy.changes({ state: 'open', limit: 2 }),
      'GET',
      '/dac/v1/policy/changes?state=open&limit=2',
      '',
    ],
    [() => custody.policy.change('c'), 'GET', '/dac/v1/policy/changes/c', ''],
    [
      () => custody.policy.prove('c', { by: 'dave', key: 'k1', signature: 's' }),
      'POST',
      '/dac/v1/policy/changes/c/possessions',
      '{"by":"dave","key":"k1","signature":"s"}',
    ],
    [
      () => custody.policy.stop({ ...SIGNER, sub_account: null, reason: 'why' }),
      'POST',
      '/dac/v1/policy/stop',
      `{${SIGNER_TEXT},"sub_account":null,"reason":"why"}`,
    ],
    [() => custody.policy.readStop('h'), 'GET', '/dac/v1/policy/stops/h', ''],
    [
      () => custody.policy.resume({ ...SIGNER, stop: 'h' }),
      'POST',
      '/dac/v1/policy/resume',
      `{${SIGNER_TEXT},"stop":"h"}`,
    ],
    [
      () => custody.policy.veto({ ...SIGNER, hash: 'h' }),
      'POST',
      '/dac/v1/policy/veto',
      `{${SIGNER_TEXT},"hash":"h"}`,
    ],
    [
      () =>
        custody.policy.suspend({ ...SIGNER, target: { person: 'a', key: 'k1' }, reason: 'why' }),
      'POST',
      '/dac/v1/policy/suspend',
      `{${SIGNER_TEXT},"target":{"person":"a","key":"k1"},"reason":"why"}`,
    ],
    [() => custody.reserves.list({ limit: 2 }), 'GET', '/dac/v1/reserves?limit=2', ''],
    [() => custody.reserves.proof('r'), 'GET', '/dac/v1/reserves/r/proof', ''],
    [() => custody.service.index(), 'GET', '/', ''],
    [() => custody.service.openApi(), 'GET', '/openapi.json', ''],
    [() => custody.service.live(), 'GET', '/livez', ''],
    [() => custody.service.ready({ deep: true }), 'GET', '/readyz?deep=1', ''],
    [() => custody.service.metrics(), 'GET', '/metrics', ''],
    [() => custody.request('post', '/dac/v1/prepaid-fee', {}), 'POST', '/dac/v1/prepaid-fee', '{}'],
    [
      () => custody.request('POST', '/dav/v1/stake', { amount: new JsonNumber('100.000001') }),
      'POST',
      '/dav/v1/stake',
      '{"amount":100.000001}',
    ],
  ]
  for (const [call, method, url, body] of calls) {
    server.script(json([]))
    await call()
    const [seen] = server.seen
    assert.deepEqual([seen?.method, seen?.url, seen?.body], [method, url, body])
    assert.equal(server.seen.length, 1)
    if (isOpen(url)) assert.equal(seen?.headers.authorization, undefined)
    else assert.equal(seen?.claims?.uri, url)
  }
  const called = new Set(
    calls.map(
      ([, method, url]) =>
        operationOf(method, url) ?? assert.fail(`${method} ${url} is no operation`),
    ),
  )
  const missing = OPERATIONS.map(({ operationId }) => operationId).filter((id) => !called.has(id))
  // An alias of createWallet; and streams, which have their own tests.
  assert.deepEqual(missing, ['createWalletAlias', 'streamCheckout', 'streamEvents'])
})

test('the types match the OpenAPI document', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const types = readFileSync(new URL('./api.d.ts', import.meta.url), 'utf8')
  const [, document, made, text] =
    /^.*\n\/\/ document (\w+)\n\/\/ types (\w+)\n([\s\S]*)$/.exec(types) ?? []
  assert.ok(
    document === sha256(DOCUMENT_TEXT) && made === sha256(String(text)),
    'run: npx node scripts/api-types.mjs',
  )
})

test('the client returns counts and decimals as the OpenAPI document defines them', () => {
  const counts = new Set<string>()
  const decimals = new Set<string>()
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, each] of Object.entries(
      (value as { properties?: Record<string, Typed> }).properties ?? {},
    )) {
      const kinds = [
        each.type,
        each.items?.type,
        ...(each.anyOf ?? []).map(({ type }) => type),
      ].flat()
      const formats = [
        each.format,
        each.items?.format,
        ...(each.anyOf ?? []).map(({ format }) => format),
      ]
      if (kinds.includes('integer') || formats.includes('double')) counts.add(name)
      if (formats.includes('decimal')) decimals.add(name)
    }
    Object.values(value).forEach(walk)
  }
  for (const [name, schema] of Object.entries(DOCUMENT.components.schemas))
    if (!name.endsWith('Request')) walk(schema)
  walk(DOCUMENT.webhooks)
  // In a page `total` is a count, in a balance an amount.
  assert.deepEqual(
    [...counts].filter((name) => !COUNTS.has(name)),
    ['total'],
    'run: npx node scripts/api-types.mjs',
  )
  assert.deepEqual(
    [...decimals].filter((name) => COUNTS.has(name)),
    [],
  )
  assert.ok(counts.size > 15 && decimals.size > 40)
})

test('returns amounts as exact decimal strings, and counts as numbers', async () => {
  server.script({
    body: '[{"id":"w","balance":0.100000000000000001,"omnibus_balance":123456789012345678901234567890,"status":"active"}]',
  })
  assert.deepEqual(await client().wallets('ETH'), [
    {
      id: 'w',
      balance: '0.100000000000000001',
      omnibus_balance: '123456789012345678901234567890',
      status: 'active',
    },
  ])
  server.script({
    body: '{"data":[{"amount":20999999.9769,"fee":0.1,"confirmations":3}],"page":1,"limit":50,"total":1}',
  })
  assert.deepEqual(await client().transactions(), {
    data: [{ amount: '20999999.9769', fee: '0.1', confirmations: 3 }],
    page: 1,
    limit: 50,
    total: 1,
  })
})

test('the total of a page is a number, and the total of a balance is a decimal string', async () => {
  server.script({ body: '{"balances":[{"asset":"ETH","total":1.000000000000000001}]}' })
  const { balances } = await client().trading.account('a')
  assert.equal(balances[0]?.total, '1.000000000000000001')
})

test('never sends amounts that are not decimal strings', async () => {
  server.script()
  for (const amount of [
    '',
    '-1',
    '01',
    '1.',
    '.5',
    '1e3',
    '1,5',
    '0x10',
    ' 1',
    'NaN',
    1.5 as unknown as string,
  ]) {
    await assert.rejects(
      client().createTransaction({ asset: 'BTC', amount, destination_address: 'x' }),
      TypeError,
    )
  }
  assert.equal(server.seen.length, 0)
})

test('never sends a request whose path leaves the service', async () => {
  for (const path of ['dac/v1/wallets', '//evil.example/x', 'http://evil.example/', ''])
    await assert.rejects(client().request('GET', path), TypeError)
})

test('signs the bytes that are sent, in their encoding on the wire', async () => {
  for (const [path, url] of [
    ['/dac/v1/x y', '/dac/v1/x%20y'],
    ['/dac/v1/../v1/ä', '/dac/v1/%C3%A4'],
    ['/dac/v1/a?b=ü#c', '/dac/v1/a?b=%C3%BC'],
  ] as const) {
    server.script(json({}))
    await client().request('GET', path)
    assert.equal(server.seen[0]?.claims?.uri, url)
    assert.equal(server.seen[0]?.url, url)
  }
})

test("a proxy's path prefix is sent but not signed", async () => {
  const sent: string[] = []
  const custody = client({
    baseUrl: 'https://proxy.example/custody/',
    fetch: async (url, init) => {
      sent.push(String(url))
      const token = new Headers(init?.headers).get('authorization')?.split('.')[1] as string
      sent.push((JSON.parse(Buffer.from(token, 'base64url').toString()) as { uri: string }).uri)
      return new Response('[]')
    },
  })
  await custody.gasTanks()
  assert.deepEqual(sent, ['https://proxy.example/custody/dac/v1/gas-tanks', '/dac/v1/gas-tanks'])
  assert.throws(() => client({ baseUrl: 'https://user:pass@host' }), TypeError)
  assert.throws(() => client({ baseUrl: 'https://host/?a=1' }), TypeError)
  assert.throws(
    () => client({ baseUrl: 'https://host/dac/v1' }),
    /baseUrl must not contain \/dac\/v1/,
  )
})

test('an error contains status, code, field, message and request id', async () => {
  server.script(problem(400, 'INSUFFICIENT_BALANCE', { field: 'amount', wallet_id: 'w' }))
  const error = await failure(
    client().createTransaction({
      asset: 'BTC',
      amount: '1',
      destination_address: 'x',
      sequence_id: 's',
    }),
  )
  assert.deepEqual(
    [error.status, error.code, error.field, error.message, error.requestId],
    [400, 'INSUFFICIENT_BALANCE', 'amount', 'INSUFFICIENT_BALANCE happened', 'r-1'],
  )
  assert.deepEqual(
    [error.type, error.problem['wallet_id']],
    ['https://custody.example/reference/errors#INSUFFICIENT_BALANCE', 'w'],
  )
  assert.equal(server.seen.length, 1)
})

test('a wrong key causes an error that names the failed claim', async () => {
  const error = await failure(
    client({
      privateKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
        type: 'pkcs8',
        format: 'pem',
      }) as string,
    }).gasTanks(),
  )
  assert.deepEqual([error.status, error.code, error.field], [401, 'UNAUTHORIZED', 'signature'])
})

test('a response that is not from the service is an error and is not retried', async () => {
  server.script({ status: 200, body: '<html>hello</html>' })
  assert.equal((await failure(client().gasTanks())).code, 'PROTOCOL')
  server.script({ status: 404, body: '<html>nginx</html>', headers: { 'x-request-id': 'h-1' } })
  const error = await failure(client().gasTanks())
  assert.deepEqual([error.status, error.code, error.requestId], [404, 'HTTP', 'h-1'])
  assert.equal(server.seen.length, 1)
})

test('retries GET after 500, 502, 503, 504 and lost connections, with new tokens and backoff', async () => {
  server.script(
    problem(500, 'INTERNAL'),
    problem(503, 'UNAVAILABLE'),
    { cut: true },
    { status: 502, body: '<html>' },
    json([]),
  )
  assert.deepEqual(await client().gasTanks(), [])
  assert.deepEqual(waits, [1000, 2000, 4000, 8000])
  assert.equal(new Set(server.seen.map((each) => each.claims?.nonce)).size, 5)
})

test('after the last attempt, the request fails with the last error', async () => {
  server.script(
    problem(500, 'INTERNAL'),
    problem(500, 'INTERNAL'),
    problem(503, 'SIGNERS_UNAVAILABLE'),
    json([]),
  )
  const error = await failure(client({ retry: { attemptsMax: 3 } }).gasTanks())
  assert.equal(error.code, 'SIGNERS_UNAVAILABLE')
  assert.equal(server.seen.length, 3)
  server.script(problem(500, 'INTERNAL'), json([]))
  await failure(client({ retry: { attemptsMax: 1 } }).gasTanks())
  assert.deepEqual(waits, [])
})

test('retry delays are bounded, and half of each delay is random', async () => {
  server.script(...Array.from({ length: 9 }, () => problem(500, 'INTERNAL')), json([]))
  await client({ retry: { attemptsMax: 10 }, random: () => 0 }).gasTanks()
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
})

const TRANSFER = { asset: 'BTC', amount: '0.1', destination_address: 'bcrt1q' }

test('retries createTransaction with a sequence_id, with the same body and a new token', async () => {
  server.script({ cut: true }, problem(500, 'INTERNAL'), json({ id: 't', status: 'pending' }))
  assert.equal((await client().createTransaction({ ...TRANSFER, sequence_id: 's-1' })).id, 't')
  assert.equal(server.seen.length, 3)
  assert.equal(new Set(server.seen.map((each) => each.body)).size, 1)
  assert.equal(new Set(server.seen.map((each) => each.claims?.nonce)).size, 3)
})

test('never retries createTransaction without a sequence_id, or other writes', async () => {
  const custody = client()
  for (const call of [
    () => custody.createTransaction(TRANSFER),
    () => custody.createWallet('BTC'),
    () => custody.createAddress('BTC'),
    () => custody.request('POST', '/dac/v1/aml', {}),
  ]) {
    for (const [answer, code] of [
      [problem(500, 'INTERNAL'), 'INTERNAL'],
      [problem(503, 'UNAVAILABLE'), 'UNAVAILABLE'],
      [{ cut: true }, 'NETWORK'],
    ] as const) {
      server.script(answer, json({}))
      assert.equal((await failure(call())).code, code)
      assert.equal(server.seen.length, 1)
    }
  }
})

test('sends a write again after KEY_PENDING, because nothing was created, at most ten times', async () => {
  const pending = {
    ...problem(503, 'KEY_PENDING'),
    headers: { 'content-type': 'application/problem+json', 'retry-after': '7' },
  }
  server.script(pending, pending, json({ id: 'w' }))
  assert.equal((await client().createWallet('BTC')).id, 'w')
  assert.deepEqual(
    waits.map((ms) => Math.floor(ms / 1000)),
    [7, 7],
  )
  assert.equal(new Set(server.seen.map((each) => each.body)).size, 1)
  assert.equal(new Set(server.seen.map((each) => each.claims?.nonce)).size, 3)
  server.script(...Array.from({ length: 11 }, () => pending))
  assert.equal((await failure(client().createWallet('BTC'))).code, 'KEY_PENDING')
  assert.equal(server.seen.length, 10)
  server.script(pending, json({ id: 'w' }))
  const once = client({ retry: { attemptsMax: 1 } })
  assert.equal((await failure(once.createWallet('BTC'))).code, 'KEY_PENDING')
  assert.equal(server.seen.length, 1)
})

test('a sequence_id of null counts as absent, so the request is not retried', async () => {
  const custody = client()
  const order = {
    exchange_account: 'a',
    market: 'BTC/USD',
    side: 'buy',
    type: 'market',
    amount: '1',
    sequence_id: null,
  } as const
  for (const call of [
    () => custody.createTransaction({ ...TRANSFER, sequence_id: null }),
    () => custody.trading.order(order),
    () => custody.invoices.create({ asset: 'BTC', amount: '1', sequence_id: null }),
    () => custody.stake({ address: 'T', resource: 'ENERGY', amount: '1', sequence_id: null }),
  ]) {
    server.script({ cut: true }, json({}))
    assert.equal((await failure(call())).code, 'NETWORK')
    assert.equal(server.seen.length, 1)
  }
})

test('returns each list entry once over all pages, even if new entries shift the pages', async () => {
  const page = (ids: number[], at: number, total: number) =>
    json({ data: ids.map((id) => ({ id: `t${id}` })), page: at, limit: 2, total })
  server.script(page([5, 4], 1, 5), page([4, 3], 2, 6), page([2, 1], 3, 6), page([], 4, 6))
  const ids: string[] = []
  for await (const { id } of client().eachTransaction({ asset: 'BTC', limit: 2 })) ids.push(id)
  assert.deepEqual(ids, ['t5', 't4', 't3', 't2', 't1'])
  assert.deepEqual(
    server.seen.map(({ url }) => url),
    [1, 2, 3].map((at) => `/dac/v1/transactions?asset=BTC&limit=2&page=${at}`),
  )
  server.script(
    json({ data: [{ id: 'e1' }], next: 'e1', has_more: true }),
    json({ data: [{ id: 'e2' }], next: 'e2', has_more: false }),
  )
  const events: string[] = []
  for await (const { id } of client().events.each({ type: '*' })) events.push(id)
  assert.deepEqual(
    [events, server.seen.map(({ url }) => url)],
    [
      ['e1', 'e2'],
      ['/dac/v1/events?type=*', '/dac/v1/events?type=*&after=e1'],
    ],
  )
  server.script(
    json({ data: [{ id: 'c1' }], next: '5.ab.0', has_more: true }),
    json({ data: [{ id: 'c2' }], next: null, has_more: false }),
  )
  const coins: string[] = []
  for await (const { id } of client().eachCoin({ asset: 'BTC' })) coins.push(id)
  assert.deepEqual(
    [coins, server.seen.map(({ url }) => url)],
    [
      ['c1', 'c2'],
      ['/dac/v1/coins?asset=BTC', '/dac/v1/coins?asset=BTC&after=5.ab.0'],
    ],
  )
})

const frame = (id: string, data: object) =>
  `id: ${id}\nevent: deposit.confirmed\ndata: ${JSON.stringify(data)}\n\n`

test('a stream resumes after the last received event, and ends with the abort signal', async () => {
  const stop = new AbortController()
  server.script(
    { status: 503, body: '{}' },
    {
      open: [
        'retry: 3000\n\n: hello\n',
        `\n${frame('e1', { amount: 1 }).slice(0, 12)}`,
        frame('e1', { amount: 1 }).slice(12),
      ],
    },
    {
      body: `${frame('e2', { amount: 0.1 })}: bye\n\n`,
      headers: { 'content-type': 'text/event-stream' },
    },
    { open: [frame('e3', { amount: 3 })] },
  )
  const seen: unknown[] = []
  const reading = (async () => {
    for await (const { data, id, event } of client().stream<{ amount: string }>(
      '/dac/v1/events/stream',
      { signal: stop.signal },
    )) {
      seen.push([id, event, data.amount])
      if (id === 'e1') server.cutAll()
      if (id === 'e3') stop.abort()
    }
  })()
  await reading
  assert.deepEqual(seen, [
    ['e1', 'deposit.confirmed', '1'],
    ['e2', 'deposit.confirmed', '0.1'],
    ['e3', 'deposit.confirmed', '3'],
  ])
  assert.deepEqual(
    server.seen.map(({ headers }) => headers['last-event-id']),
    [undefined, undefined, 'e1', 'e2'],
  )
  assert.equal(new Set(server.seen.map(({ claims }) => claims?.nonce)).size, 4)
  server.script(problem(410, 'CURSOR_EXPIRED'))
  const refused = await failure(
    (async () => {
      for await (const each of client().events.stream({ after: 'old' }))
        assert.fail(JSON.stringify(each))
    })(),
  )
  assert.equal(refused.code, 'CURSOR_EXPIRED')
  server.script({ open: [frame('1', { inv_status: 'Paid', version: 2 })] })
  for await (const state of client().checkout.stream('v')) {
    assert.deepEqual(state, { inv_status: 'Paid', version: 2 } as unknown)
    break
  }
  assert.equal(server.seen[0]?.url, '/checkout/v/events')
})

test('the caller can abort a request, also while it waits for a retry', async () => {
  const stop = new AbortController()
  server.script(() => {
    stop.abort(new Error('enough'))
    return { hang: true }
  })
  const pending = client().request('GET', '/dac/v1/gas-tanks', undefined, { signal: stop.signal })
  await assert.rejects(pending, /enough/)
  const late = new AbortController()
  server.script(problem(503, 'UNAVAILABLE'), json([]))
  const waiting = client({
    sleep: () => {
      late.abort(new Error('too late'))
      return new Promise(() => {})
    },
  })
  await assert.rejects(
    waiting.request('GET', '/dac/v1/gas-tanks', undefined, { signal: late.signal }),
    /too late/,
  )
  assert.equal(server.seen.length, 1)
})

test('after 429, waits until the rate limit resets by the service’s clock, for any method', async () => {
  // The server's clock is ten years ahead of this machine's.
  const limited = {
    ...problem(429, 'RATE_LIMITED'),
    headers: {
      date: 'Fri, 20 Nov 2037 16:59:40 GMT',
      'x-rate-limit-reset': '2037-11-20T17:00:00.000Z',
      'retry-after': '20',
    },
  }
  server.script(limited, json({ id: 't' }))
  await client().createTransaction(TRANSFER)
  assert.deepEqual(waits, [20_250])
  server.script(limited, limited, json([]))
  await client().gasTanks()
  assert.equal(waits.length, 2)
})

test('limits the wait after 429 with an invalid reset time; an option disables waiting', async () => {
  server.script(
    {
      ...problem(429, 'RATE_LIMITED'),
      headers: { 'x-rate-limit-reset': '2999-01-01T00:00:00.000Z' },
    },
    json([]),
  )
  await client().gasTanks()
  assert.deepEqual(waits, [61_250])
  server.script(
    { ...problem(429, 'RATE_LIMITED'), headers: { 'x-rate-limit-reset': 'soon' } },
    json([]),
  )
  await client().gasTanks()
  assert.deepEqual(waits, [60_250])
  server.script(problem(429, 'RATE_LIMITED'), json([]))
  assert.equal((await failure(client({ waitOnRateLimit: false }).gasTanks())).status, 429)
  server.script(...Array.from({ length: 9 }, () => problem(429, 'RATE_LIMITED')))
  assert.equal((await failure(client().gasTanks())).status, 429)
  assert.equal(server.seen.length, 6)
})

test('waits as long as the service states if another request of the workspace is in progress', async () => {
  const concurrent = { ...problem(429, 'CONCURRENT_REQUEST'), headers: { 'retry-after': '1' } }
  server.script(concurrent, concurrent, json([]))
  await client().gasTanks()
  assert.deepEqual(waits, [1250, 1250])
})

test('a service that does not respond in time causes a time-out error', async (t) => {
  // A separate server: on a busy machine it can read a request after the client has given up, and
  // would count it for the next test.
  const slow = await TestServer.start(API_KEY, pair.publicKey)
  t.after(() => slow.stop())
  slow.script({ hang: true }, { hang: true })
  const custody = client({ baseUrl: slow.url, timeoutMs: 100, retry: { attemptsMax: 2 } })
  const error = await failure(custody.gasTanks())
  assert.deepEqual([error.status, error.code], [0, 'NETWORK'])
  assert.match(error.message, /no response from 127\.0\.0\.1:\d+ within 100 ms/)
})

test('an error without a response names the host and the cause', async () => {
  const gone = await TestServer.start(API_KEY, pair.publicKey)
  const { url } = gone
  await gone.stop()
  const error = await failure(client({ baseUrl: url, retry: { attemptsMax: 1 } }).gasTanks())
  assert.equal(
    error.message,
    `GET /dac/v1/gas-tanks: no response from ${new URL(url).host} (ECONNREFUSED)`,
  )
})

test('does not follow redirects, because the token is valid for this service only', async () => {
  server.script({ status: 307, headers: { location: '/dac/v1/elsewhere' } })
  assert.equal((await failure(client({ retry: { attemptsMax: 1 } }).gasTanks())).code, 'NETWORK')
  assert.equal(server.seen.length, 1)
})

test('waitForTransaction returns the final state, confirmed or failed', async () => {
  server.script(
    json({ id: 't', status: 'pending', sub_status: 'CREATED' }),
    problem(503, 'UNAVAILABLE'),
    json({ id: 't', status: 'pending', sub_status: 'CONFIRMING' }),
    json({ id: 't', status: 'confirmed' }),
  )
  assert.equal((await client().waitForTransaction('t')).status, 'confirmed')
  assert.deepEqual(waits, [2000, 1000, 2000])
  server.script(json({ id: 't', status: 'failed' }))
  assert.equal((await client().waitForTransaction('t')).status, 'failed')
  server.script(problem(404, 'NOT_FOUND'))
  assert.equal((await failure(client().waitForTransaction('t'))).code, 'NOT_FOUND')
})

test('waitForTransaction fails after its time-out', async () => {
  const custody = client({ sleep: async () => {} })
  server.script(
    ...Array.from({ length: 10 }, () =>
      json({ id: 't', status: 'pending', sub_status: 'SIGNING' }),
    ),
  )
  const error = await failure(custody.waitForTransaction('t', { timeoutMs: 50, intervalMs: 100 }))
  assert.equal(error.code, 'TIMEOUT')
  assert.match(error.message, /SIGNING/)
  assert.equal(server.seen.length, 1)
})

test('the private key does not appear in any printed text', () => {
  assert.doesNotMatch(JSON.stringify(client()), /PRIVATE|privateKey/)
})
