import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadRegistry } from '@custody/chains'
import { amlInstallation } from '../../custody/aml/settings.ts'
import { pricesInstallation } from '../../custody/prices/settings.ts'
import { readSettings, readVariable } from './settings.ts'
import { registry } from '../../../testing/deposits-support.ts'

const folder = mkdtempSync(join(tmpdir(), 'custody-settings-'))
after(() => {
  rmSync(folder, { recursive: true })
})
const NONE = join(folder, 'none.json')

/** Returns the settings of a start on mainnet with this configuration. */
function configured(text: string, env: Record<string, string> = {}) {
  const file = join(folder, 'config.json')
  writeFileSync(file, text)
  return readSettings({ CUSTODY_NETWORK: 'mainnet', CUSTODY_CONFIG: file, ...env })
}

test('every setting without a value has its default', () => {
  const settings = readSettings({})
  const { prepaidTiers, sweep, ...rest } = settings
  assert.deepEqual(rest, {
    home: join(process.cwd(), '.custody'),
    port: 8080,
    host: '127.0.0.1',
    publicUrl: null,
    databaseUrl: null,
    migrationUrl: null,
    walArchive: null,
    databasePooled: false,
    network: 'local',
    rateLimit: 1000,
    rateScope: 'key',
    authLegacy: false,
    trustProxy: 0,
    endpoints: {},
    secretsKey: null,
    pollMs: 500,
    feeBumpAfterMs: 0,
    auditEveryMs: 0,
    logFormat: 'auto',
    logLevel: 'info',
    role: 'all',
    localChains: null,
    webhookAllow: ['127.0.0.0/8', '::1/128'],
    metricsAllow: ['127.0.0.0/8', '::1/128'],
    reservesPublic: 'totals',
    allowDeprecated: new Set(),
    aml: {
      urls: { CHAINALYSIS: null, ELLIPTIC: null, TRM: null },
      ellipticThresholds: [9, 7, 4],
      trmChains: {},
      exposureUsd: 100,
      cacheMs: 0,
      ofacFile: null,
    },
    prices: {
      coinGeckoUrl: null,
      coinGeckoKey: null,
      coinGeckoPlan: 'demo',
      coinGeckoIds: {},
      exchanges: ['kraken'],
      everyMs: null,
      feesWithoutPrice: {},
    },
  })
  assert.deepEqual(
    [prepaidTiers.map(({ name }) => name), sweep['*']],
    [['STARTER', 'GROWTH', 'BUSINESS', 'ENTERPRISE'], { cost_multiple: 0n, min_amount: null }],
  )
  const empty = readSettings(
    Object.fromEntries(
      [
        'PORT',
        'CUSTODY_HOST',
        'CUSTODY_PUBLIC_URL',
        'CUSTODY_HOME',
        'DATABASE_URL',
        'CUSTODY_WAL_ARCHIVE',
        'CUSTODY_DATABASE_POOLER',
        'CUSTODY_NETWORK',
        'CUSTODY_CONFIG',
        'CUSTODY_RATE_LIMIT',
        'CUSTODY_RATE_SCOPE',
        'CUSTODY_AUTH_LEGACY',
        'CUSTODY_TRUST_PROXY',
        'CUSTODY_ROLE',
        'CUSTODY_FEE_BUMP_AFTER_S',
        'CUSTODY_SWEEP_COST_MULTIPLE',
        'CUSTODY_LOG_LEVEL',
        'CUSTODY_SECRETS_KEY',
        'CUSTODY_OFAC_FILE',
        'CUSTODY_AML_TRM_URL',
        'CUSTODY_AML_ELLIPTIC_THRESHOLDS',
        'CUSTODY_PREPAID_TIERS',
        'CUSTODY_COINGECKO_KEY',
        'CUSTODY_COINGECKO_PLAN',
        'CUSTODY_COINGECKO_URL',
        'CUSTODY_COINGECKO_IDS',
        'CUSTODY_PRICE_REFRESH_S',
        'CUSTODY_AML_TRM_CHAINS',
        'CUSTODY_RESERVES_PUBLIC',
        'CUSTODY_ALLOW_DEPRECATED',
        'CUSTODY_FEES_WITHOUT_PRICE',
      ].map((name) => [name, '']),
    ),
  )
  assert.deepEqual(empty, settings)
  assert.deepEqual(
    readSettings({ CUSTODY_PRICE_EXCHANGES: '' }).prices.exchanges,
    [],
    'no exchange at all is a choice',
  )
})

test('configured values replace the defaults', () => {
  const settings = readSettings({
    PORT: '0',
    CUSTODY_HOST: '0.0.0.0',
    CUSTODY_PUBLIC_URL: 'https://pay.example/',
    CUSTODY_HOME: folder,
    DATABASE_URL: 'postgres://u:p@h/d',
    DATABASE_MIGRATION_URL: 'postgres://o:p@h/d',
    CUSTODY_WAL_ARCHIVE: '/w',
    CUSTODY_DATABASE_POOLER: 'transaction',
    CUSTODY_NETWORK: 'mainnet',
    CUSTODY_CONFIG: NONE,
    CUSTODY_RATE_LIMIT: '7',
    CUSTODY_RATE_SCOPE: 'endpoint',
    CUSTODY_AUTH_LEGACY: '1',
    CUSTODY_TRUST_PROXY: '16',
    CUSTODY_ROLE: 'api',
    CUSTODY_FEE_BUMP_AFTER_S: '60',
    CUSTODY_AUDIT_EVERY_H: '24',
    CUSTODY_SWEEP_COST_MULTIPLE: '1.5',
    CUSTODY_LOG_LEVEL: 'silent',
    CUSTODY_LOG_FORMAT: 'lines',
    CUSTODY_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    CUSTODY_OFAC_FILE: 'list.json',
    CUSTODY_AML_ELLIPTIC_URL: 'https://proxy.example/e/',
    CUSTODY_AML_ELLIPTIC_THRESHOLDS: '8,6.5,2',
    CUSTODY_AML_TRM_CHAINS: 'KLAY=kaia, ETH = ethereum_2',
    CUSTODY_AML_EXPOSURE_USD: '2500',
    CUSTODY_AML_CACHE_S: '120',
    CUSTODY_PREPAID_TIERS: 'ONE:0:0:0:0',
    CUSTODY_COINGECKO_KEY: 'key',
    CUSTODY_COINGECKO_PLAN: 'pro',
    CUSTODY_COINGECKO_IDS: 'KLAY=kaia',
    CUSTODY_PRICE_EXCHANGES: 'coinbase, kraken,coinbase',
    CUSTODY_PRICE_REFRESH_S: '50',
    CUSTODY_WEBHOOK_ALLOW: '10.1.0.0/16, fd00::/8',
    CUSTODY_METRICS_ALLOW: '10.2.0.0/16',
    CUSTODY_RESERVES_PUBLIC: 'off',
    CUSTODY_ALLOW_DEPRECATED: 'FTM, USDC_TRX',
    CUSTODY_FEES_WITHOUT_PRICE: 'KLAY=0.5, FTM = 0.000001',
  })
  const { prepaidTiers, sweep, home, ...rest } = settings
  assert.deepEqual(rest, {
    port: 0,
    host: '0.0.0.0',
    publicUrl: 'https://pay.example',
    databaseUrl: 'postgres://u:p@h/d',
    migrationUrl: 'postgres://o:p@h/d',
    walArchive: '/w',
    databasePooled: true,
    network: 'mainnet',
    rateLimit: 7,
    rateScope: 'endpoint',
    authLegacy: true,
    trustProxy: 16,
    endpoints: {},
    secretsKey: Buffer.alloc(32, 7).toString('base64'),
    pollMs: 5000,
    feeBumpAfterMs: 60_000,
    auditEveryMs: 86_400_000,
    logFormat: 'lines',
    logLevel: 'silent',
    role: 'api',
    localChains: null,
    webhookAllow: ['10.1.0.0/16', 'fd00::/8'],
    metricsAllow: ['10.2.0.0/16'],
    reservesPublic: 'off',
    allowDeprecated: new Set(['FTM', 'USDC_TRX']),
    aml: {
      urls: { CHAINALYSIS: null, ELLIPTIC: 'https://proxy.example/e', TRM: null },
      ellipticThresholds: [8, 6.5, 2],
      trmChains: { KLAY: 'kaia', ETH: 'ethereum_2' },
      exposureUsd: 2500,
      cacheMs: 120_000,
      ofacFile: 'list.json',
    },
    prices: {
      coinGeckoUrl: null,
      coinGeckoKey: 'key',
      coinGeckoPlan: 'pro',
      coinGeckoIds: { KLAY: 'kaia' },
      exchanges: ['coinbase', 'kraken'],
      everyMs: 50_000,
      feesWithoutPrice: { KLAY: 500_000n, FTM: 1n },
    },
  })
  assert.deepEqual([home, prepaidTiers.length, sweep['*']?.cost_multiple], [folder, 1, 1500n])
  const aml = amlInstallation(settings.aml, null)
  assert.deepEqual(aml.urls, {
    CHAINALYSIS: 'https://api.chainalysis.com',
    ELLIPTIC: 'https://proxy.example/e',
    TRM: 'https://api.trmlabs.com',
  })
  assert.equal(amlInstallation(settings.aml, 'http://local').urls.TRM, 'http://local/aml/trm')
  const prices = pricesInstallation(settings.prices, null, registry)
  assert.deepEqual(
    [prices.coinGeckoUrl, prices.coinGeckoKey, prices.exchanges, prices.everyMs],
    [
      'https://pro-api.coingecko.com/api/v3',
      { header: 'x-cg-pro-api-key', value: 'key' },
      [
        { id: 'coinbase', url: null },
        { id: 'kraken', url: null },
      ],
      50_000,
    ],
  )
  const local = pricesInstallation(readSettings({}).prices, 'http://local', registry)
  assert.deepEqual(
    [local.coinGeckoUrl, local.coinGeckoKey, local.exchanges, local.everyMs],
    [
      'http://local/prices/coingecko',
      null,
      [{ id: 'kraken', url: 'http://local/exchanges/kraken' }],
      5000,
    ],
  )
})

test("an invalid value is reported with the variable's name, and never with a secret", () => {
  for (const [name, text, said] of [
    ['PORT', '65536', 'PORT=65536: must be an integer from 0 to 65535'],
    ['PORT', '1.5', 'PORT=1.5: must be an integer from 0 to 65535'],
    ['CUSTODY_RATE_LIMIT', '0', 'CUSTODY_RATE_LIMIT=0: must be an integer from 1 to 10000000'],
    [
      'CUSTODY_RATE_LIMIT',
      'many',
      'CUSTODY_RATE_LIMIT=many: must be an integer from 1 to 10000000',
    ],
    ['CUSTODY_TRUST_PROXY', '-1', 'CUSTODY_TRUST_PROXY=-1: must be an integer from 0 to 16'],
    [
      'CUSTODY_FEE_BUMP_AFTER_S',
      '86401',
      'CUSTODY_FEE_BUMP_AFTER_S=86401: must be an integer from 0 to 86400',
    ],
    [
      'CUSTODY_PRICE_REFRESH_S',
      '51',
      'CUSTODY_PRICE_REFRESH_S=51: must be an integer from 1 to 50',
    ],
    [
      'CUSTODY_WEBHOOK_ALLOW',
      '10.0.0.1',
      'CUSTODY_WEBHOOK_ALLOW: "10.0.0.1" is not a range of addresses such as 10.0.0.0/8',
    ],
    [
      'CUSTODY_NETWORK',
      'testnet',
      'CUSTODY_NETWORK=testnet: must be local, mainnet or regtest-CHAIN_ID; regtest alone is regtest-1337',
    ],
    [
      'CUSTODY_NETWORK',
      'regtest-56',
      'CUSTODY_NETWORK=regtest-56: 56 is the chain id of BNB Smart Chain; a rehearsal needs a chain with an id of its own',
    ],
    ['CUSTODY_RATE_SCOPE', 'ip', 'CUSTODY_RATE_SCOPE=ip: must be one of key, endpoint'],
    ['CUSTODY_AUTH_LEGACY', 'yes', 'CUSTODY_AUTH_LEGACY=yes: must be one of 0, 1'],
    ['CUSTODY_ROLE', 'signer', 'CUSTODY_ROLE=signer: must be one of all, api, worker, scanner'],
    ['CUSTODY_LOCAL_CHAINS', 'chains', 'CUSTODY_LOCAL_CHAINS: must be an http(s) URL'],
    [
      'CUSTODY_LOG_LEVEL',
      'loud',
      'CUSTODY_LOG_LEVEL=loud: must be one of trace, debug, info, warn, error, fatal, silent',
    ],
    ['CUSTODY_COINGECKO_PLAN', 'free', 'CUSTODY_COINGECKO_PLAN=free: must be one of demo, pro'],
    ['CUSTODY_COINGECKO_PLAN', 'pro', 'CUSTODY_COINGECKO_PLAN=pro: requires CUSTODY_COINGECKO_KEY'],
    [
      'CUSTODY_AML_ELLIPTIC_THRESHOLDS',
      '4,7,9',
      'CUSTODY_AML_ELLIPTIC_THRESHOLDS=4,7,9: must be three descending scores such as 9,7,4',
    ],
    [
      'CUSTODY_AML_ELLIPTIC_THRESHOLDS',
      '9,7',
      'CUSTODY_AML_ELLIPTIC_THRESHOLDS=9,7: must be three descending scores such as 9,7,4',
    ],
    ['CUSTODY_AML_TRM_CHAINS', 'KLAY', 'CUSTODY_AML_TRM_CHAINS: "KLAY" is not NETWORK=chain'],
    ['CUSTODY_AML_TRM_URL', 'trm', 'CUSTODY_AML_TRM_URL: must be an http(s) URL'],
    ['CUSTODY_COINGECKO_URL', 'ftp://x', 'CUSTODY_COINGECKO_URL: must be an http(s) URL'],
    ['CUSTODY_COINGECKO_IDS', 'KLAY=Kaia', 'CUSTODY_COINGECKO_IDS: "KLAY=Kaia" is not COIN=id'],
    [
      'CUSTODY_COINGECKO_IDS',
      'KLAI=kaia',
      /^CUSTODY_COINGECKO_IDS: coin KLAI does not exist; must be one of BTC, /,
    ],
    ['CUSTODY_FEES_WITHOUT_PRICE', 'KLAY', 'CUSTODY_FEES_WITHOUT_PRICE: "KLAY" is not COIN=USD'],
    [
      'CUSTODY_FEES_WITHOUT_PRICE',
      'KLAY=-1',
      'CUSTODY_FEES_WITHOUT_PRICE: "KLAY=-1" is not COIN=USD',
    ],
    [
      'CUSTODY_FEES_WITHOUT_PRICE',
      'KLAY=0.0000001',
      'CUSTODY_FEES_WITHOUT_PRICE: "KLAY=0.0000001" is not COIN=USD',
    ],
    [
      'CUSTODY_FEES_WITHOUT_PRICE',
      'KLAI=1',
      /^CUSTODY_FEES_WITHOUT_PRICE: coin KLAI does not exist; must be one of BTC, /,
    ],
    ['CUSTODY_ALLOW_DEPRECATED', 'FTN', 'CUSTODY_ALLOW_DEPRECATED: asset FTN does not exist'],
    ['CUSTODY_PRICE_EXCHANGES', 'mtgox1', 'CUSTODY_PRICE_EXCHANGES: ccxt has no exchange "mtgox1"'],
    [
      'CUSTODY_PRICE_EXCHANGES',
      'coinbase',
      'CUSTODY_PRICE_EXCHANGES: the local chains support kraken only, not "coinbase"',
    ],
    [
      'CUSTODY_PREPAID_TIERS',
      'A:1:0:0:0',
      /^CUSTODY_PREPAID_TIERS: the first tier must apply from a volume of 0; a tier is NAME:VOLUME/,
    ],
    ['CUSTODY_SWEEP_COST_MULTIPLE', 'a lot', /^CUSTODY_SWEEP_COST_MULTIPLE: /],
    ['DATABASE_URL', 'mysql://u:hidden@h/d', 'DATABASE_URL: must begin with postgresql://'],
    ['CUSTODY_SECRETS_KEY', 'hidden', 'CUSTODY_SECRETS_KEY: must be 32 bytes in base64, or @FILE'],
  ] as const) {
    let message = ''
    try {
      readSettings({ [name]: text })
    } catch (error) {
      ;({ message } = error as Error)
    }
    if (typeof said === 'string') assert.equal(message, said)
    else assert.match(message, said)
    assert.ok(!message.includes('hidden'), message)
  }
})

test('refuses to allow a retired asset', () => {
  assert.throws(
    () =>
      readSettings({
        CUSTODY_NETWORK: 'mainnet',
        CUSTODY_CONFIG: NONE,
        CUSTODY_ALLOW_DEPRECATED: 'FTM,ONE',
      }),
    {
      message:
        'CUSTODY_ALLOW_DEPRECATED: ONE is retired: Harmony stopped producing blocks, and ONE moved to Ethereum',
    },
  )
})

test('a command reads one variable without validating the others', () => {
  assert.equal(readVariable('CUSTODY_NETWORK', { PORT: 'wrong' }), 'local')
  assert.equal(readVariable('CUSTODY_OFAC_FILE', { CUSTODY_OFAC_FILE: '' }), undefined)
  assert.throws(
    () => readVariable('CUSTODY_NETWORK', { CUSTODY_NETWORK: 'x' }),
    /^Error: CUSTODY_NETWORK=x: must be local, mainnet or regtest-CHAIN_ID;/,
  )
})

test('the network configuration is validated to the field, and its keys are never displayed', () => {
  const good = configured(
    JSON.stringify({
      comment: 'ours',
      networks: {
        BTC: { url: 'http://127.0.0.1:8332', username: 'u', password: 'p' },
        TRX: { url: 'https://t', headers: { KEY: 'k' } },
      },
      sweep: {
        networks: { BTC: { cost_multiple: 3 } },
        assets: { USDT_ETH: { cost_multiple: '0.5', min_amount: '20.5' } },
      },
    }),
  )
  assert.deepEqual(good.endpoints, {
    BTC: { endpoints: [{ url: 'http://127.0.0.1:8332', username: 'u', password: 'p' }], quorum: 1 },
    TRX: { endpoints: [{ url: 'https://t', headers: { KEY: 'k' } }], quorum: 1 },
  })
  const several =
    '{"networks":{"ETH":{"endpoints":[{"url":"https://a","requests_per_day":9000},{"url":"https://b"}],"quorum":2}}}'
  assert.deepEqual(configured(several).endpoints, {
    ETH: {
      endpoints: [{ url: 'https://a', requests_per_day: 9000 }, { url: 'https://b' }],
      quorum: 2,
    },
  })
  assert.deepEqual(good.sweep, {
    '*': { cost_multiple: 2000n, min_amount: null },
    'network:BTC': { cost_multiple: 3000n, min_amount: null },
    'asset:USDT_ETH': { cost_multiple: 500n, min_amount: 20_500_000n },
  })
  assert.deepEqual(
    readSettings({ CUSTODY_CONFIG: join(folder, 'config.json') }).endpoints,
    {},
    'the local chains need none',
  )
  const floors = (code: string, text: string) =>
    `{"networks":{"${code}":{"url":"http://x","fee_floors":${text}}}}`
  assert.deepEqual(
    configured(floors('BTC', '{"low":5,"high":"40.5"}')).endpoints['BTC']?.endpoints[0]?.fee_floors,
    { low: '5', high: '40.5' },
  )
  const tip = (code: string, text: string) =>
    `{"networks":{"${code}":{"url":"http://x","min_tip":${text}}}}`
  assert.equal(configured(tip('POL', '30.5')).endpoints['POL']?.endpoints[0]?.min_tip, '30.5')
  const checkpoint = (code: string, text: string) =>
    `{"networks":{"${code}":{"url":"http://x","checkpoint":${text}}}}`
  assert.deepEqual(
    configured(checkpoint('BTC', `{"height":970000,"hash":"${'AB'.repeat(32)}"}`)).endpoints['BTC']
      ?.endpoints[0]?.checkpoint,
    { height: 970_000, hash: 'ab'.repeat(32) },
  )
  for (const [config, said] of [
    ['{', /config\.json: is not valid JSON/],
    ['[]', /config\.json: must contain a JSON object, as custody\.config\.example\.json does/],
    [
      '{"networks":{"BTC":{"url":"hidden"}}}',
      /config\.json: networks\.BTC\.url: must be an http\(s\) URL$/,
    ],
    [
      '{"networks":{"BTC":{"url":"https://hidden:x"}}}',
      /config\.json: networks\.BTC\.url: must be an http\(s\) URL$/,
    ],
    [
      '{"networks":{"ETH":{"endpoints":[]}}}',
      /networks\.ETH\.endpoints: must be a list of 1 to 8 endpoints$/,
    ],
    [
      '{"networks":{"ETH":{"endpoints":[{"url":"hidden"}]}}}',
      /networks\.ETH\.endpoints\.0\.url: must be an http\(s\) URL$/,
    ],
    [
      '{"networks":{"ETH":{"endpoints":[{"url":"https://hidden"},{"url":"https://hidden"}]}}}',
      /networks\.ETH\.endpoints\.1\.url: is the URL of another endpoint of the list$/,
    ],
    [
      '{"networks":{"ETH":{"endpoints":[{"url":"https://a","user":"hidden"}]}}}',
      /networks\.ETH\.endpoints\.0\.user: is not a known setting; known are url, username, password, headers, requests_per_day$/,
    ],
    [
      '{"networks":{"ETH":{"url":"https://hidden","endpoints":[{"url":"https://a"}]}}}',
      /networks\.ETH\.url: is set per endpoint: move it into endpoints$/,
    ],
    [
      '{"networks":{"ETH":{"url":"https://hidden","quorum":2}}}',
      /networks\.ETH\.quorum: must not exceed the number of its endpoints, 1$/,
    ],
    [
      '{"networks":{"ETH":{"endpoints":[{"url":"https://a"},{"url":"https://b"}],"quorum":0}}}',
      /networks\.ETH\.quorum: must be a whole number of endpoints$/,
    ],
    ['{"networks":{"BTC":{}}}', /config\.json: networks\.BTC\.url: must be an http\(s\) URL$/],
    [
      '{"networks":{"BTC":{"url":"http://x","password":7}}}',
      /config\.json: networks\.BTC\.password: must be a string$/,
    ],
    [
      '{"networks":{"BTC":{"url":"http://x","headers":{"KEY":7}}}}',
      /config\.json: networks\.BTC\.headers\.KEY: must be a string$/,
    ],
    [
      floors('BTC', '{"low":0.5}'),
      /fee_floors\.low: must not be below the minimum that the network relays, nor below a lower level$/,
    ],
    [floors('BTC', '{"low":5,"high":"4.999"}'), /fee_floors\.high: must not be below/],
    [floors('BTC', '{"low":5.0001}'), /fee_floors\.low: /],
    [floors('BTC', '{"low":true}'), /fee_floors\.low: must be a number$/],
    [floors('BTC', '{"fast":5}'), /fee_floors: Unrecognized key: "fast"$/],
    [floors('LTC', '{"low":5}'), /fee_floors\.medium: must not be below/],
    [
      floors('ETH', '{"low":5}'),
      /networks\.ETH\.fee_floors: is supported only for Bitcoin and similar networks/,
    ],
    [tip('BTC', '5'), /networks\.BTC\.min_tip: is supported only for EVM networks$/],
    [tip('POL', '24.9'), /networks\.POL\.min_tip: must not be below the minimum that the nodes/],
    [tip('ETH', '0'), /networks\.ETH\.min_tip: must not be below/],
    [tip('ETH', '"1.0000000001"'), /networks\.ETH\.min_tip: /],
    [tip('ETH', 'true'), /networks\.ETH\.min_tip: must be a number$/],
    [
      checkpoint('BTC', '{"height":0,"hash":""}'),
      /networks\.BTC\.checkpoint\.height: must be the height of a block$/,
    ],
    [
      checkpoint('BTC', '{"height":965000,"hash":"0xab"}'),
      /networks\.BTC\.checkpoint\.hash: must be a block hash of 64 hexadecimal digits$/,
    ],
    [
      '{"networks":{"ETH":{"url":"http://x","requests_per_day":100}}}',
      /networks\.ETH\.requests_per_day: must be a whole number of requests, at least 5000$/,
    ],
    [
      '{"networks":{"ETH":{"url":"http://x","requests_per_day":"many"}}}',
      /networks\.ETH\.requests_per_day: must be a whole number/,
    ],
    [
      checkpoint('BTC', '{"height":965000}'),
      /networks\.BTC\.checkpoint\.hash: must be a block hash/,
    ],
    [checkpoint('BTC', '7'), /networks\.BTC\.checkpoint: must have height and hash of a block$/],
    [
      checkpoint('ETH', `{"height":1,"hash":"${'ab'.repeat(32)}"}`),
      /networks\.ETH\.checkpoint: is supported only for Bitcoin and similar networks/,
    ],
    ['{"network":{}}', /config\.json: network: is not a known setting; did you mean networks\?$/],
    [
      '{"networks":{"ETC":{"url":"http://x"}}}',
      /config\.json: networks\.ETC: is not a known network; known are BTC, /,
    ],
    [
      '{"networks":{"btc":{"url":"http://x"}}}',
      /config\.json: networks\.btc: is not a known network; did you mean BTC\?$/,
    ],
    [
      '{"networks":{"Bitcoin Csh":{"url":"http://x"}}}',
      /is not a known network; did you mean BCH\?$/,
    ],
    [
      '{"networks":{"polygon":{"url":"http://x"}}}',
      /config\.json: networks\.polygon: is not a known network; did you mean POL\?$/,
    ],
    [
      '{"networks":{"BTC":{"url":"http://x","user_name":"hidden"}}}',
      /config\.json: networks\.BTC\.user_name: is not a known setting; did you mean username\?$/,
    ],
    [
      '{"networks":{"BTC":{"url":"http://x","request_per_day":7}}}',
      /did you mean requests_per_day\?$/,
    ],
    [
      '{"sweep":{"network":{}}}',
      /config\.json: sweep\.network: is not a known setting; did you mean networks\?$/,
    ],
    [
      '{"sweep":{"assets":{"BTC":{"min_amont":"1"}}}}',
      /config\.json: sweep\.assets\.BTC\.min_amont: is not a known setting; did you mean min_amount\?$/,
    ],
    [
      '{"sweep":{"networks":{"BTX":{"cost_multiple":1}}}}',
      /config\.json: sweep\.networks\.BTX: is not a known network; known are /,
    ],
    [
      '{"sweep":{"assets":{"XBT":{"cost_multiple":1}}}}',
      /config\.json: sweep\.assets\.XBT: is not a known asset; /,
    ],
    [
      '{"sweep":{"networks":{"BTC":{"min_amount":1}}}}',
      /config\.json: sweep\.networks\.BTC\.min_amount: an amount requires an asset$/,
    ],
    [
      '{"sweep":{"assets":{"BTC":{"min_amount":"1.123456789"}}}}',
      /config\.json: sweep\.assets\.BTC\.min_amount: /,
    ],
    [
      '{"sweep":{"assets":{"BTC":{"cost_multiple":true}}}}',
      /config\.json: sweep\.assets\.BTC\.cost_multiple: must be a number/,
    ],
  ] as const) {
    assert.throws(
      () => configured(config),
      (error: Error) => {
        assert.match(error.message, said)
        assert.doesNotMatch(error.message, /hidden/)
        return true
      },
      config,
    )
  }
})

test('the example configuration has a valid entry for each supported mainnet network', () => {
  const example = fileURLToPath(
    new URL('../../../../../custody.config.example.json', import.meta.url),
  )
  const { endpoints } = readSettings({ CUSTODY_NETWORK: 'mainnet', CUSTODY_CONFIG: example })
  const configured = Object.keys(endpoints)
  const active = loadRegistry('mainnet')
    .networks.filter(({ status }) => status === undefined)
    .map(({ code }) => code)
  const add = active
    .filter((code) => !configured.includes(code))
    .map((code) => `add to custody.config.example.json: "${code}": { "url": "…" }`)
  const remove = configured
    .filter((code) => !active.includes(code))
    .map((code) => `remove from custody.config.example.json: ${code}`)
  assert.deepEqual([...add, ...remove], [])
})
