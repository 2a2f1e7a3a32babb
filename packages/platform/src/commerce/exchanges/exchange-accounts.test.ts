import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { compareExchanges } from '../../server/audit/exchanges.ts'
import { ApiError } from '../../core/errors.ts'
import { createAccount } from './create-account.ts'
import { changeAccount } from './change-account.ts'
import { deleteAccount } from './delete-account.ts'
import { createExchanges } from './exchanges.ts'
import { listAccounts } from './list-accounts.ts'
import { listExchanges } from './list-exchanges.ts'
import { listMarkets } from './list-markets.ts'
import { databaseNonces } from './nonces.ts'
import { readAccount } from './read-account.ts'
import { readOrderBook } from './read-orderbook.ts'
import { readTicker } from './read-ticker.ts'
import { reconcileDue, RECONCILE_MS } from './reconcile.ts'
import { testAccount } from './test-account.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { exchangeFeatures } from '../../../testing/venues/exchange-features.ts'
import { testEmittedEvents, wrongEvents } from '../../../testing/event-assertions.ts'
import { TradingFixture } from '../../../testing/venues/trading-fixture.ts'

/**
 * Tests of accounts at exchanges: their API keys, their balances, and the comparison of the ledger
 * with the exchange.
 */
let current: TradingFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => {
  // The events of the previous test must match the registry.
  if (current) assert.deepEqual(await wrongEvents(database.get()), [])
  return (current = new TradingFixture(database.get())).begin()
}
const refused = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (assert.match(error.message, message), true)

test('linking tests the key, seals its secrets and stores the balance in the ledger', async () => {
  const fixture = await open()
  const { id, warnings, balances, permissions } = await fixture.account()
  assert.deepEqual(
    [warnings, permissions],
    [[], { trade: true, withdraw: false, ip_restricted: true }],
  )
  assert.deepEqual(
    balances.map(({ asset, total, usd, price_usd }) => [asset, total, usd, price_usd]),
    [
      ['BTC', '10', '600000', '60000'],
      ['USD', '1000000', '1000000', '1'],
    ],
  )
  const [row] = await fixture.database.query<{ sealed_credentials: Buffer }>(
    'select sealed_credentials from exchange_accounts where id = $1',
    [id],
  )
  const secret = Buffer.from('secret').toString('base64')
  assert.ok(!row?.sealed_credentials.toString('latin1').includes(secret))
  const everything = JSON.stringify([
    await fixture.account(),
    await fixture.ask(listAccounts),
    await fixture.database.query('select payload from events'),
    fixture.warned,
  ])
  assert.ok(!everything.includes(secret) && !everything.includes('"key"'))
  assert.deepEqual(await fixture.books(), {
    'venue venue:BTC': '10',
    'venue venue:USD': '1000000',
    'prepaid USD': '1000',
  })
})

test('refuses a key that the exchange rejects, that may withdraw, or that cannot be tested', async () => {
  const fixture = await open()
  const count = async () => (await fixture.database.query('select 1 from exchange_accounts')).length
  fixture.kraken.permissions = ['query-funds', 'withdraw-funds']
  await assert.rejects(
    fixture.link({ api_key: 'b' }),
    refused(
      'INVALID_REQUEST',
      /^allow_withdrawal: the key has withdrawal permission; create a key without it/,
    ),
  )
  const allowed = await fixture.link({ api_key: 'b', allow_withdrawal: true })
  assert.match(
    String(allowed['warnings']),
    /the key has withdrawal permission: if it is stolen.*the key may not trade/,
  )
  for (const [body, message] of [
    [{ api_secret: 'not base64!' }, /^api_secret: must be base64, as kraken displays it$/],
    [{ api_secret: 'abc' }, /^api_secret: must be base64/],
  ] as const)
    await assert.rejects(
      fixture.link({ api_key: 'c', ...body }),
      refused('INVALID_REQUEST', message),
    )
  for (const field of ['api_key', 'api_secret', 'passphrase']) {
    for (const value of ['schlüssel', 'k\u200b', '键']) {
      const parsed = createAccount.body?.safeParse({
        exchange: 'kraken',
        label: 'x',
        api_key: 'k',
        api_secret: 'c2VjcmV0',
        [field]: value,
      })
      assert.match(
        parsed?.error?.issues[0]?.message ?? 'taken',
        /^must consist of printable ASCII characters/,
        `${field} ${value}`,
      )
    }
  }
  fixture.kraken.permissions = ['query-funds', 'modify-trades']
  for (const [error, code, message] of [
    [
      'EAPI:Invalid key',
      'EXCHANGE_KEY_REFUSED',
      /^api_key: the exchange rejected the key \(kraken: EAPI:Invalid key\)/,
    ],
    ['EAPI:Invalid signature', 'EXCHANGE_KEY_REFUSED', /^api_key: /],
    [
      'EService:Unavailable',
      'EXCHANGE_UNAVAILABLE',
      /^api_key: the exchange cannot be queried.*nothing was changed, try again/,
    ],
  ] as const) {
    fixture.kraken.error = error
    await assert.rejects(fixture.link({ api_key: 'c' }), refused(code, message))
  }
  fixture.kraken.error = null
  for (const [more, message] of [
    [
      { exchange: 'mtgox' },
      /^exchange: mtgox is not a known exchange; the local network has kraken and binance$/,
    ],
    [{ exchange: 'okx' }, /^exchange: okx is not available here; the local network has/],
    [{ exchange: '../../etc' }, /^exchange: /],
    [{ label: '' }, /^label: must not be empty/],
    [{ api_key: '' }, /^api_key: must not be empty/],
    [{ api_secret: '' }, /^api_secret: must not be empty/],
    [{ api_secret: 'a\u0000b' }, /^api_secret: must not contain control characters/],
    [{ allow_withdrawal: 'yes' }, /^allow_withdrawal: must be true or false/],
  ] as const)
    await assert.rejects(
      fixture.link({ api_key: 'd', ...more }),
      refused('INVALID_REQUEST', message),
    )
  await assert.rejects(
    fixture.link(),
    refused(
      'EXCHANGE_ACCOUNT_EXISTS',
      new RegExp(`^api_key: is already linked as ${fixture.accountId}`),
    ),
  )
  assert.equal(await count(), 2)
})

test("testing returns the key's permissions; a refusal marks the account failed until a success", async () => {
  const fixture = await open()
  const ask = () =>
    fixture.ask<{ ok: boolean; status: string; error: string | null; warnings: string[] }>(
      testAccount,
      { params: { id: fixture.accountId } },
    )
  assert.deepEqual([(await ask()).ok, (await ask()).warnings], [true, []])
  fixture.kraken.permissions.push('withdraw-funds')
  assert.match(
    String((await ask()).warnings),
    /the key now has withdrawal permission, which was not allowed here/,
  )
  fixture.kraken.error = 'EAPI:Invalid key'
  for (const _ of [1, 2])
    assert.deepEqual([(await ask()).ok, (await ask()).status], [false, 'failing'])
  fixture.kraken.error = 'EService:Unavailable'
  const away = await ask()
  assert.deepEqual([away.ok, away.error], [false, 'kraken: EService:Unavailable'])
  fixture.kraken.error = null
  assert.equal((await ask()).status, 'active')
  const events = await fixture.database.query<{ type: string }>(
    `select type from events where type like 'exchange_account.%' order by id`,
  )
  assert.deepEqual(
    events.map(({ type }) => type.split('.')[1]),
    ['created', 'updated', 'failing', 'updated'],
  )
})

test('a key can only be changed completely and after a test, and orders then use the new key', async () => {
  const fixture = await open()
  fixture.kraken.accounts?.set('a-new-key', fixture.kraken.accountOf('key'))
  const change = (body: unknown) =>
    fixture.ask<Record<string, string>>(changeAccount, { params: { id: fixture.accountId }, body })
  assert.equal((await change({ label: 'treasury' }))['label'], 'treasury')
  await assert.rejects(
    change({ api_key: 'new' }),
    refused(
      'INVALID_REQUEST',
      /^api_secret: is required together with the other fields of a new key/,
    ),
  )
  await assert.rejects(change({ lable: 'x' }), refused('UNKNOWN_FIELD', /did you mean label/))
  fixture.kraken.error = 'EAPI:Invalid key'
  await assert.rejects(
    change({ api_key: 'new', api_secret: 'bmV3' }),
    refused('EXCHANGE_KEY_REFUSED', /^api_key/),
  )
  fixture.kraken.error = null
  assert.equal((await change({ api_key: 'a-new-key', api_secret: 'bmV3' }))['key_hint'], '…-key')
  const { id } = await fixture.create()
  await fixture.pass(2)
  assert.equal((await fixture.read(id)).status, 'filled')
})

test('a balance difference is reported when found twice, and enters the ledger when accepted', async () => {
  const fixture = await open()
  const events = async () => {
    const { counts, differences } = await compareExchanges(fixture.services, {
      attemptsMax: 2,
      pauseMs: 0,
    })
    return {
      accounts: counts.accounts,
      balances: counts.balances,
      said: differences.map(
        ({ asset, ledger, chain, note }) => `${asset} ${ledger} ${chain} ${note}`,
      ),
    }
  }
  assert.deepEqual(await events(), { accounts: 1, balances: 2, said: [] })
  fixture.kraken.held.set('XXBT', 12)
  await fixture.reconcile()
  assert.deepEqual((await fixture.account()).difference, [])
  await fixture.reconcile()
  assert.deepEqual((await fixture.account()).difference, [
    { asset: 'BTC', ledger: '10', venue: '12', difference: '2' },
  ])
  assert.deepEqual((await events()).said, ['BTC 10 12 at the exchange'])
  fixture.kraken.error = 'EService:Unavailable'
  assert.deepEqual(await events(), {
    accounts: 0,
    balances: 0,
    said: ['   not compared: kraken: EService:Unavailable'],
  })
  fixture.kraken.error = null
  await fixture.ask(changeAccount, {
    params: { id: fixture.accountId },
    body: { accept_difference: true },
  })
  assert.deepEqual([(await events()).said, (await fixture.books())['venue venue:BTC']], [[], '12'])
  await fixture.reconcile()
  assert.deepEqual((await fixture.account()).difference, [])
})

test('compares each account once a minute; an unreachable one does not delay the others', async () => {
  const fixture = await open()
  await fixture.link({ api_key: 'other' }, await fixture.tenant('two'))
  assert.equal(await reconcileDue(fixture.services), 0)
  fixture.now += RECONCILE_MS
  assert.equal(await reconcileDue(fixture.services), 2)
  assert.equal(await reconcileDue(fixture.services), 0)
  await fixture.database.query(
    'update exchange_accounts set sealed_credentials = $2 where id = $1',
    [fixture.accountId, Buffer.from('broken')],
  )
  await fixture.database.query(
    'update exchange_accounts set credentials_version = 9 where id = $1',
    [fixture.accountId],
  )
  const before = await fixture.database.query<{ id: string; at: Date }>(
    'select id, balances_at at from exchange_accounts order by sealed_credentials = $1 desc',
    [Buffer.from('broken')],
  )
  fixture.now += RECONCILE_MS
  assert.equal(await reconcileDue(fixture.services), 2)
  const after = await fixture.database.query<{ id: string; at: Date }>(
    'select id, balances_at at from exchange_accounts order by sealed_credentials = $1 desc',
    [Buffer.from('broken')],
  )
  assert.deepEqual(
    after.map(({ at }, n) => at > (before[n] as { at: Date }).at),
    [false, true],
  )
})

test('returns earlier balances with their age while the exchange is unreachable', async () => {
  const fixture = await open()
  fixture.kraken.error = 'EService:Unavailable'
  fixture.now += 30_000
  const { balances, balances_age_ms } = await fixture.account()
  assert.equal(balances.length, 2)
  assert.ok(Number(balances_age_ms) >= 30_000, String(balances_age_ms))
})

test('unlinking is refused while orders are pending; otherwise it deletes secrets and balances', async () => {
  const fixture = await open()
  const remove = () => fixture.ask(deleteAccount, { params: { id: fixture.accountId } })
  const { id } = await fixture.create({ price: '50000' })
  await fixture.pass(2)
  await assert.rejects(
    remove(),
    refused('EXCHANGE_ACCOUNT_BUSY', /^id: 1 of its orders are in progress/),
  )
  await fixture.cancel(id)
  await fixture.pass(3)
  await remove()
  await assert.rejects(
    fixture.account(),
    refused('NOT_FOUND', /exchange account .* does not exist/),
  )
  assert.equal((await fixture.read(id)).status, 'cancelled', 'its orders stay to be read')
  assert.deepEqual(await fixture.books(), { 'prepaid USD': '1000' })
  assert.deepEqual(
    await fixture.database.query('select sealed_credentials from exchange_accounts'),
    [{ sealed_credentials: null }],
  )
  await fixture.link()
})

test('another tenant cannot read, test, change or unlink an account', async () => {
  const fixture = await open()
  const caller = await fixture.tenant('two')
  const params = { id: fixture.accountId }
  for (const [endpoint, body] of [
    [readAccount],
    [testAccount, {}],
    [changeAccount, { label: 'mine' }],
    [deleteAccount],
  ] as const) {
    await assert.rejects(
      fixture.ask(endpoint, { params, caller, ...(body === undefined ? {} : { body }) }),
      refused('NOT_FOUND', /^id: exchange account .* does not exist/),
    )
  }
  assert.deepEqual((await fixture.ask<{ data: unknown[] }>(listAccounts, { caller })).data, [])
})

test('returns markets, ticker and order book; an invalid name is refused with its field', async () => {
  const fixture = await open()
  const { data } = await fixture.ask<{ data: Record<string, unknown>[] }>(listMarkets, {
    query: { exchange: 'kraken', base: 'btc' },
  })
  assert.deepEqual(data, [
    {
      market: 'BTC/USD',
      base: 'BTC',
      quote: 'USD',
      active: true,
      amount_step: '0.00000001',
      price_step: '0.1',
      min_amount: '0.0001',
      max_amount: null,
      min_cost: '0.5',
      maker_fee: '0.0025',
      taker_fee: '0.004',
    },
  ])
  assert.deepEqual(
    (
      await fixture.ask<{ data: unknown[] }>(listMarkets, {
        query: { exchange: 'kraken', quote: 'EUR' },
      })
    ).data,
    [],
  )
  const { bid, ask } = await fixture.ask(readTicker, {
    query: { exchange: 'Kraken', market: 'btc/usd' },
  })
  assert.deepEqual([bid, ask], ['59990', '60000'])
  const { bids, asks } = await fixture.ask(readOrderBook, {
    query: { exchange: 'kraken', market: 'BTC/USD' },
  })
  assert.deepEqual(
    [bids, asks],
    [[{ price: '59990', amount: '1000' }], [{ price: '60000', amount: '1000' }]],
  )
  for (const [query, message] of [
    [{ exchange: 'nowhere', market: 'BTC/USD' }, /^exchange: nowhere is not a known exchange/],
    [{ exchange: 'kraken', market: 'ETH/USD' }, /^market: kraken has no market ETH\/USD/],
    [{ exchange: 'kraken' }, /^market: is required/],
    [
      { exchange: 'kraken', market: 'BTC/USD', depth: '0' },
      /^depth: must be an integer from 1 to 500/,
    ],
  ] as const)
    await assert.rejects(fixture.ask(readOrderBook, { query }), refused('INVALID_REQUEST', message))
})

test('the list of exchanges matches ccxt, and a local platform offers only local ones', async () => {
  const file = JSON.parse(
    readFileSync(new URL('../../../data/exchanges.json', import.meta.url), 'utf8'),
  ) as unknown[]
  assert.deepEqual(file, exchangeFeatures(), 'node scripts/exchange-features.mjs writes it anew')
  const fixture = await open()
  const listed = async () =>
    (
      await fixture.ask<{
        data: {
          exchange: string
          support: string
          passphrase: boolean
          features: Record<string, boolean>
        }[]
      }>(listExchanges)
    ).data
  assert.deepEqual(
    (await listed()).map(({ exchange, support }) => [exchange, support]),
    [
      ['binance', 'tested'],
      ['kraken', 'tested'],
    ],
  )
  Object.assign(fixture.services, {
    exchanges: createExchanges({
      settings: { network: 'mainnet' },
      devnetUrl: null,
      database: fixture.database,
      environment: fixture.services.environment,
      fetch,
    }),
  })
  const all = await listed()
  assert.ok(all.length > 60)
  assert.deepEqual(
    all.filter(({ support }) => support === 'tested').map(({ exchange }) => exchange),
    ['binance', 'bitstamp', 'coinbase', 'kraken', 'okx'],
  )
  assert.equal(all.find(({ exchange }) => exchange === 'okx')?.passphrase, true)
  assert.ok(
    all.some(({ support }) => support === 'generic') &&
      all.some(({ support }) => support === 'read-only'),
  )
})

test('a key’s nonce never decreases, and its lock is released when the holding process ends', async () => {
  const fixture = await open()
  const nonces = databaseNonces(fixture.database)
  const first = (await nonces.take('k', 'one')) as bigint
  assert.equal(first, BigInt(fixture.now))
  assert.equal(await nonces.take('k', 'two'), null)
  await nonces.giveBack('k', 'two')
  assert.equal(await nonces.take('k', 'two'), null, 'only its holder gives a turn back')
  await nonces.giveBack('k', 'one')
  fixture.now -= 3_600_000
  assert.equal(await nonces.take('k', 'two'), first + 1n)
  assert.equal(await nonces.take('k', 'one'), null)
  fixture.now += 16_000
  assert.equal(await nonces.take('k', 'one'), first + 2n)
  assert.notEqual(await nonces.take('other', 'one'), null)
})

test('each change of an exchange account emits one event', async () => {
  const fixture = await open()
  await fixture.ask(changeAccount, { params: { id: fixture.accountId }, body: { label: 'other' } })
  fixture.kraken.held.set('XXBT', 12)
  for (let at = 0; at < 5; at++) await fixture.reconcile()
  fixture.kraken.held.set('XXBT', 10)
  for (let at = 0; at < 5; at++) await fixture.reconcile()
  const events = await fixture.database.query<{ type: string }>(
    `select type from events where type like 'exchange_account.%' order by id`,
  )
  assert.deepEqual(
    events.map(({ type }) => type.split('.')[1]),
    ['created', 'updated', 'difference', 'difference'],
    'found, and no longer there',
  )
})
testEmittedEvents(
  () => database.get(),
  ['exchange_account.created', 'exchange_account.updated', 'exchange_account.difference'],
)
