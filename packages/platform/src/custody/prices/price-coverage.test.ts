import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { collectPrices } from '../../server/app/health/collectors/prices.ts'
import { readiness } from '../../server/app/health/readiness.ts'
import { doctor } from '../../server/operator/doctor/doctor.ts'
import { coinsInUse, diagnosePrices, priceLines } from './coverage.ts'
import { priceSources, pricesInstallation } from './settings.ts'
import { readSettings } from '../../core/settings/settings.ts'
import { systemEnvironment } from '../../core/environment.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { DatabaseHold } from '../../core/engine/database-hold.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody } from '../../../testing/harness.ts'

/**
 * Tests of coins without a price: where they are reported, and how a transfer of such a coin
 * behaves.
 */
const mainnet = loadRegistry('mainnet')
const api = useApi({
  prices: { ...readSettings({}).prices, feesWithoutPrice: { XRP: 2_500_000n } },
})
const home = mkdtempSync(join(tmpdir(), 'custody-prices-'))
after(() => rmSync(home, { recursive: true, force: true }))

/** Coin ids that are known to the stub of CoinGecko's `simple/price`; the stub omits other ids. */
const KNOWN = new Set(['ethereum', 'tether', 'usd-coin', 'kaia'])
let server: Server
let coinGecko = ''
before(async () => {
  server = createServer((request, response) => {
    const ids = new URL(request.url ?? '/', 'http://host').searchParams.get('ids')?.split(',') ?? []
    response.end(
      JSON.stringify(
        Object.fromEntries(
          ids
            .filter((id) => KNOWN.has(id))
            .map((id) => [id, { usd: 1, last_updated_at: 1_700_000_000 }]),
        ),
      ),
    )
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  coinGecko = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => server.close())

const sourcesOf = (env: Record<string, string>) => {
  const { prices } = readSettings({
    CUSTODY_PRICE_EXCHANGES: '',
    CUSTODY_COINGECKO_URL: coinGecko,
    ...env,
  })
  return priceSources(pricesInstallation(prices, null, mainnet), systemEnvironment(), fetch)
}

test('coins in use are the coins of configured networks, except retired ones', () => {
  assert.deepEqual(coinsInUse(mainnet, (code) => code === 'KLAY' || code === 'ONE').sort(), [
    'KLAY',
    'USDC',
    'USDT',
  ])
  assert.ok(!coinsInUse(mainnet, () => true).includes('ONE'))
  assert.ok(coinsInUse(loadRegistry('local'), () => true).includes('ONE'))
})

test('the doctor names a coin without a price source, and the settings that add one', async () => {
  const coins = coinsInUse(mainnet, (code) => code === 'KLAY' || code === 'BTC')
  const result = await diagnosePrices(sourcesOf({}), coins, () => 1_700_000_060_000)
  assert.deepEqual(result, { failed: [], missing: ['BTC'], stale: [], asked: ['coingecko'] })
  assert.match(
    priceLines(result).join('\n'),
    /^prices  no source \(coingecko\) has a price of BTC: .*CUSTODY_COINGECKO_IDS.*CUSTODY_FEES_WITHOUT_PRICE$/,
  )
  const renamed = await diagnosePrices(
    sourcesOf({ CUSTODY_COINGECKO_IDS: 'KLAY=klay-token' }),
    coins,
  )
  assert.deepEqual(renamed.missing.toSorted(), ['BTC', 'KLAY'])
  const away = await diagnosePrices(sourcesOf({ CUSTODY_COINGECKO_URL: 'http://127.0.0.1:1' }), [
    'KLAY',
  ])
  assert.deepEqual(
    [away.missing, away.failed.map(({ source }) => source)],
    [['KLAY'], ['coingecko']],
  )
  assert.match(priceLines(away)[0] ?? '', /^prices  coingecko cannot be reached/)
})

test('the doctor fails if a coin in use has no price, and lists retired and deprecated ones', async () => {
  const config = join(home, 'custody.config.json')
  const url = 'http://127.0.0.1:1'
  writeFileSync(config, JSON.stringify({ networks: { KLAY: { url }, XRP: { url }, FTM: { url } } }))
  const env = { ...process.env }
  try {
    Object.assign(process.env, {
      CUSTODY_HOME: home,
      CUSTODY_NETWORK: 'mainnet',
      CUSTODY_CONFIG: config,
      CUSTODY_COINGECKO_URL: coinGecko,
      CUSTODY_PRICE_EXCHANGES: '',
    })
    const { result, text, exitCode } = await doctor()
    assert.equal(exitCode, 1)
    assert.deepEqual((result['prices'] as { missing: string[] }).missing.toSorted(), ['FTM', 'XRP'])
    const all = text.join('\n')
    const usable = mainnet.networks.filter(({ status }) => status?.state !== 'retired').length
    assert.match(all, new RegExp(`^mainnet: 3 of ${usable} networks configured$`, 'm'))
    assert.match(all, /^ONE +retired +since 2026-09-10: Harmony stopped producing blocks/m)
    assert.match(
      all,
      /^ +FTM: FTM is deprecated since 2024-12-18: .*New wallets and addresses cannot be created, but the balance can be sent$/m,
    )
    assert.match(all, /^prices  no source \(coingecko\) has a price of XRP/m)
    Object.assign(process.env, { CUSTODY_ALLOW_DEPRECATED: 'FTM' })
    assert.doesNotMatch((await doctor()).text.join('\n'), /FTM is deprecated/)
  } finally {
    process.env = env
  }
})

test('without a price a transfer is refused with the reason, or charged the fixed fee', async () => {
  await api.started
  const user = await api.user('unpriced')
  const services = api.services
  const priced = services.prices
  const named = async () => {
    const { checks } = await readiness({
      ...services,
      signers: { peers: [] } as unknown as SignerNodes,
      hold: new DatabaseHold(),
    })
    await collectPrices(services)
    const metric = [
      ...(await services.metrics.text()).matchAll(/^custody_price_missing\{coin="(\w+)"\} 1$/gm),
    ].map(([, coin]) => coin)
    return [checks['prices'], metric]
  }
  assert.deepEqual(await named(), ['ok', []])
  for (const asset of ['XRP', 'XLM']) {
    assert.equal((await call(user, 'POST', '/dac/v1/create-wallet', { asset })).status, 200)
    await api.fund(user, asset, 10_000_000_000n)
  }
  const stale = { price: 10n ** 12n, at: api.now() - 3_600_000, sources: ['test'], stale: true }
  Object.assign(services, {
    prices: {
      price: (coin: string) =>
        coin === 'XRP' ? null : coin === 'XLM' ? stale : priced.price(coin),
    },
  })
  try {
    assert.deepEqual(await named(), [
      'no current price of XRP, XLM; transfers whose platform fee depends on it are refused, or charged the fixed fee',
      ['XRP', 'XLM'],
    ])
    const XLM = 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7'
    const refused = await call<Problem>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('XLM', '5', XLM, {}),
    )
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.field],
      [503, 'PRICE_UNAVAILABLE', 'asset'],
      refused.text,
    )
    assert.match(
      refused.body.message,
      /no current USD price of XLM \(the last price is of .*\), so its platform fee is unknown; nothing was created/,
    )
    const charged = await call<{ platform_fee: string }>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('XRP', '5', 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', {}),
    )
    assert.equal(charged.status, 200, charged.text)
    assert.equal(String(charged.body.platform_fee), '2.5')
    assert.equal(
      (await call<{ total: string }>(user, 'GET', '/dac/v1/transactions')).body.total,
      '1',
    )
  } finally {
    Object.assign(services, { prices: priced })
  }
})
