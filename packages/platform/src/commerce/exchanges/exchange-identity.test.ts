import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import * as fc from '../../../../../testing/property.ts'
import { tableRows } from '../../../testing/documents.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { testEmittedEvents, wrongEvents } from '../../../testing/event-assertions.ts'
import { TradingFixture } from '../../../testing/venues/trading-fixture.ts'
import { CREDENTIALS, ScriptedExchange } from '../../../testing/venues/venue-scripts.ts'
import { openClient } from '../../core/ccxt.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { compareExchanges } from '../../server/audit/exchanges.ts'
import { quoteConversion } from '../trading/quote-conversion.ts'
import { createOrder } from '../trading/create-order.ts'
import { createExchangeWithdrawal } from '../exchange-transfers/create-withdrawal.ts'
import { readExchangeAddress as readDepositAddress } from '../exchange-transfers/read-address.ts'
import type { AccountRow, Identity } from './account.ts'
import { changeAccount } from './change-account.ts'
import type { Client } from './client.ts'
import { Connector } from './connector.ts'
import { deleteAccount } from './delete-account.ts'
import { ACCOUNT_IDS, generic } from './generic.ts'
import { countedOf } from './identity.ts'
import { listAccounts } from './list-accounts.ts'
import { MANNERS } from './venues.ts'

/**
 * Tests that one account at an exchange counts once, whichever and however many of its API keys are
 * linked, in however many workspaces.
 */
let current: TradingFixture | undefined
const database = useDatabase({ migrated: true, now: () => current?.now ?? Date.now() })
const open = async () => {
  if (current) assert.deepEqual(await wrongEvents(database.get()), [])
  return (current = new TradingFixture(database.get())).begin()
}

/**
 * Documented responses of each exchange to the call that returns the account's ID.
 */
const DOCUMENTED: Record<string, { path: string; body: (id: unknown) => object; id: unknown }> = {
  kraken: {
    path: '/0/private/GetApiKeyInfo',
    body: (iban) => ({ error: [], result: { apiKeyName: 'x', permissions: [], iban } }),
    id: 'AA88 N84G WOAK NMOI',
  },
  binance: {
    path: '/api/v3/account',
    body: (uid) => ({ accountType: 'SPOT', balances: [], permissions: ['SPOT'], uid }),
    id: 354937868,
  },
  coinbase: {
    path: '/api/v3/brokerage/key_permissions',
    body: (id) => ({ can_view: true, portfolio_uuid: id, portfolio_type: 'DEFAULT' }),
    id: '2ca72458-ade9-45fd-83f2-e1f468b70026',
  },
  okx: {
    path: '/api/v5/account/config',
    body: (uid) => ({ code: '0', data: [{ uid, mainUid: '44705892343619584' }], msg: '' }),
    id: '44705892343619585',
  },
  bybit: {
    path: '/v5/user/query-api',
    body: (userID) => ({ retCode: 0, retMsg: '', result: { apiKey: 'k', userID } }),
    id: 24600000,
  },
  coinex: {
    path: '/v2/account/info',
    body: (id) => ({ code: 0, data: { user_id: id }, message: 'OK' }),
    id: '41FD7DCD',
  },
}
/** Exchanges for which no documented call returns an ID of the key's own account. */
const WITHOUT = ['bitstamp']

async function connectorOf(exchange: string, body: object): Promise<[Connector, ScriptedExchange]> {
  const script = new ScriptedExchange({ [DOCUMENTED[exchange]?.path ?? '']: { body } })
  const { apiKey, apiSecret, passphrase } = CREDENTIALS[exchange] ?? {
    apiKey: 'key',
    apiSecret: 'secret',
    passphrase: null,
  }
  const client = await openClient<Client>({
    id: exchange,
    url: null,
    fetch: script.fetch as typeof fetch,
    more: {
      apiKey,
      secret: apiSecret,
      ...(passphrase === null ? {} : { password: passphrase }),
    },
  })
  const manner = MANNERS[exchange] ?? generic(client.has, exchange)
  return [new Connector({ client, manner, now: () => 0, ready: () => Promise.resolve() }), script]
}

test('reads the account ID of every exchange that has one, by one documented call', async () => {
  assert.deepEqual(
    [...Object.keys(DOCUMENTED), ...WITHOUT].sort(),
    [...new Set([...Object.keys(MANNERS), ...Object.keys(ACCOUNT_IDS)])].sort(),
    'each adapter is in one of the two lists',
  )
  for (const [exchange, { path, body, id }] of Object.entries(DOCUMENTED)) {
    const [venue, script] = await connectorOf(exchange, body(id))
    assert.equal(venue.reportsAccountId, true, exchange)
    assert.equal(await venue.accountId(), String(id), exchange)
    assert.deepEqual(
      script.requests.map((each) => each.path),
      [path],
      exchange,
    )
    for (const missing of [undefined, null, '', 0, '0', {}, [], true, 'x'.repeat(101), 'ä']) {
      const [other] = await connectorOf(exchange, body(missing))
      assert.equal(await other.accountId(), null, `${exchange} ${JSON.stringify(missing)}`)
    }
  }
  for (const exchange of WITHOUT) {
    const [venue, script] = await connectorOf(exchange, {})
    assert.deepEqual([venue.reportsAccountId, await venue.accountId()], [false, null], exchange)
    assert.deepEqual(script.requests, [])
  }
})

test('the trading guide states for each exchange whether it reports an account ID', () => {
  const guide = readFileSync(new URL('../../../../../docs/trading.md', import.meta.url), 'utf8')
  const rows = tableRows(guide)
  const head = rows.find((cells) => cells.includes('Kraken')) as string[]
  const row = rows.find(([first]) => first === 'Reports the account’s id') as string[]
  assert.ok(row, 'the table has the row')
  for (const exchange of Object.keys(MANNERS)) {
    const at = head.findIndex((cell) => cell.toLowerCase() === exchange)
    assert.equal(row[at] !== 'no', DOCUMENTED[exchange] !== undefined, exchange)
  }
})

interface Linked {
  id: string
  identity: Identity
  warnings: string[]
}
const stateOf = async (fixture: TradingFixture) => ({
  accounts: (await fixture.database.query('select 1 from exchange_accounts')).length,
  balances: (await fixture.database.query('select 1 from exchange_balances')).length,
  books: await fixture.books(),
  events: (await fixture.database.query('select 1 from events')).length,
})
const rejection = async (attempt: Promise<unknown>): Promise<ApiError> => {
  const error: unknown = await attempt.then(
    () => assert.fail('was accepted'),
    (cause: unknown) => cause,
  )
  assert.ok(error instanceof ApiError, String(error))
  return error
}
const inSubAccount = async (fixture: TradingFixture, caller: Caller): Promise<Caller> => {
  const row = await fixture.database.one<{ id: string }>(
    `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'other', 2)
      returning id`,
    [caller.workspaceId],
  )
  return { ...caller, subAccountId: (row as { id: string }).id, subAccount: 'other' }
}

test('an account is linked once in the installation, by whichever of its keys', async () => {
  const fixture = await open()
  fixture.kraken.accounts?.set('key', 'AA11').set('second', 'AA11')
  await fixture.ask(deleteAccount, { params: { id: fixture.accountId } })
  const first = await fixture.link({ label: 'a secret label' })
  assert.deepEqual([first['identity'], first['warnings']], ['proven', []])
  const other = await fixture.tenant('two')
  const sister = await inSubAccount(fixture, fixture.caller)
  const before = await stateOf(fixture)
  for (const [caller, key, where] of [
    [fixture.caller, 'second', ` as ${first.id}`],
    [sister, 'second', ' in another sub-account'],
    [other, 'key', ' in this installation'],
    [other, 'second', ' in this installation'],
  ] as const) {
    const error = await rejection(fixture.link({ api_key: key }, caller))
    assert.deepEqual(
      [error.code, error.message],
      [
        'EXCHANGE_ACCOUNT_LINKED',
        `api_key: belongs to an account at kraken that is already linked${where}`,
      ],
    )
    const disclosed = JSON.stringify([error.message, error.details])
    if (caller !== fixture.caller)
      for (const secret of [first.id, 'one', 'a secret label', fixture.caller.workspaceId])
        assert.ok(!disclosed.includes(`${secret}`), `${secret} in ${disclosed}`)
  }
  assert.deepEqual(await stateOf(fixture), before, 'nothing was stored')
  assert.equal(
    (await rejection(fixture.link())).code,
    'EXCHANGE_ACCOUNT_EXISTS',
    'the same key in the same workspace',
  )
  await fixture.ask(deleteAccount, { params: { id: first.id } })
  assert.equal((await fixture.link({ api_key: 'second' }, other))['identity'], 'proven')
})

test('two links of one account at the same time result in one account', async () => {
  const fixture = await open()
  const keys = Array.from({ length: 8 }, (_, n) => `key-${n}`)
  for (const key of keys) fixture.kraken.accounts?.set(key, 'AA22')
  const callers = await Promise.all(keys.map((key) => fixture.tenant(key)))
  const results = await Promise.allSettled(
    keys.map((key, n) => fixture.link({ api_key: key }, callers[n] as Caller)),
  )
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const result of results)
    if (result.status === 'rejected')
      assert.equal((result.reason as ApiError).code, 'EXCHANGE_ACCOUNT_LINKED')
})

test('without an account ID an account is not proven distinct, but the same key is known', async () => {
  const fixture = await open()
  fixture.kraken.accounts = null
  await fixture.ask(deleteAccount, { params: { id: fixture.accountId } })
  const linked = await fixture.link()
  assert.equal(linked['identity'], 'unproven')
  const two = await fixture.tenant('two')
  assert.equal((await rejection(fixture.link({}, two))).code, 'EXCHANGE_ACCOUNT_LINKED')
  assert.equal((await fixture.link({ api_key: 'b' }, two))['identity'], 'unproven')
  const { counts, differences } = await compareExchanges(fixture.services, {
    attemptsMax: 1,
    pauseMs: 0,
  })
  assert.deepEqual(counts, { accounts: 0, balances: 0, unproven: 2, duplicates: 0 })
  assert.deepEqual(differences, [])
  fixture.kraken.accounts = new Map()
  await fixture.reconcile()
  const { data } = await fixture.ask<{ data: Linked[] }>(listAccounts)
  assert.deepEqual(
    data.map(({ identity }) => identity),
    ['proven'],
    'proven once the exchange reports the ID',
  )
})

/** Makes accounts look as they did before identities were stored. */
const forget = (fixture: TradingFixture) =>
  fixture.database.query(`update exchange_accounts set identity = 'unread', venue_account = null`)
const rowsOf = (fixture: TradingFixture) =>
  fixture.database.query<AccountRow>('select * from exchange_accounts order by created_at, id')

/** Three accounts of earlier versions: the first two are the same account at the exchange. */
async function earlier(): Promise<{ fixture: TradingFixture; two: Caller; ids: string[] }> {
  const fixture = await open()
  const two = await fixture.tenant('two')
  const ids = [fixture.accountId]
  for (const key of ['again', 'apart']) {
    fixture.now += 1000
    ids.push((await fixture.link({ api_key: key }, two)).id)
  }
  fixture.kraken.accounts?.set('key', 'AA33').set('again', 'AA33')
  await forget(fixture)
  return { fixture, two, ids }
}
const claimsOf = async (fixture: TradingFixture) =>
  Object.fromEntries(
    (
      await fixture.database.query<{ address: string; claims: string }>(
        `select address, string_agg(asset || ' ' || trim_scale(balance / 1000000000000000000),
          ', ' order by asset) claims
         from ledger_accounts where kind = 'venue' and balance <> 0 group by 1`,
      )
    ).map(({ address, claims }) => [address, claims]),
  )
const ALL = 'venue:BTC 10, venue:USD 1000000'

test('existing accounts are identified at the next comparison, and one of two same ones counts', async () => {
  const { fixture, two, ids } = await earlier()
  const [first, second, third] = ids as [string, string, string]
  const { data: shown } = await fixture.ask<{ data: Linked[] }>(listAccounts)
  assert.equal(shown[0]?.identity, 'unproven', 'until it was identified')
  assert.deepEqual(await claimsOf(fixture), { [first]: ALL, [second]: ALL, [third]: ALL })
  await fixture.reconcile()
  assert.deepEqual(
    (await rowsOf(fixture)).map(({ identity }) => identity),
    ['proven', 'duplicate', 'proven'],
  )
  assert.deepEqual(await claimsOf(fixture), { [first]: ALL, [third]: ALL })
  assert.match(JSON.stringify(fixture.warned), /two linked exchange accounts are the same/)
  const { data } = await fixture.ask<{ data: Linked[] }>(listAccounts, { caller: two })
  assert.match(
    String(data.find(({ id }) => id === second)?.warnings),
    /another linked account is the same account at the exchange: this one is not counted/,
  )
  const told = await fixture.database.query<{ identity: string }>(
    `select payload->>'identity' identity from events
      where type = 'exchange_account.updated' and payload->>'id' = $1 order by id`,
    [second],
  )
  assert.equal(told.at(-1)?.identity, 'duplicate', 'its owner is informed')
  for (let at = 0; at < 3; at++) await fixture.reconcile()
  assert.deepEqual(await claimsOf(fixture), { [first]: ALL, [third]: ALL })
  const { counts, differences } = await compareExchanges(fixture.services, {
    attemptsMax: 1,
    pauseMs: 0,
  })
  assert.deepEqual(
    [counts, differences],
    [{ accounts: 2, balances: 4, unproven: 0, duplicates: 1 }, []],
  )
})

test('a duplicate accepts no operation, and counts once the other account is unlinked', async () => {
  const { fixture, two, ids } = await earlier()
  const [first, second, third] = ids as [string, string, string]
  await fixture.reconcile()
  Object.assign(fixture.services, {
    registry: loadRegistry('local'),
    networks: { has: () => true },
  })
  const order = { market: 'BTC/USD', side: 'buy', type: 'limit', amount: '0.5', price: '60000' }
  for (const [field, attempt] of [
    [
      'exchange_account',
      () => fixture.ask(createOrder, { body: { ...order, exchange_account: second }, caller: two }),
    ],
    [
      'accounts',
      () =>
        fixture.ask(quoteConversion, {
          body: { from_asset: 'BTC', to_asset: 'USD', amount: '1', accounts: [second] },
          caller: two,
        }),
    ],
    [
      'exchange_account',
      () =>
        fixture.ask(createExchangeWithdrawal, {
          body: { exchange_account: second, asset: 'BTC', amount: '1' },
          caller: two,
        }),
    ],
    [
      'id',
      () =>
        fixture.ask(readDepositAddress, {
          params: { id: second },
          query: { asset: 'BTC' },
          caller: two,
        }),
    ],
  ] as const) {
    const error = await rejection(attempt())
    assert.deepEqual([error.code, error.field], ['EXCHANGE_ACCOUNT_LINKED', field])
    assert.match(error.message, /another linked account is the same account at kraken/)
  }
  await fixture.ask(deleteAccount, { params: { id: first } })
  await fixture.reconcile()
  assert.deepEqual(
    (await rowsOf(fixture)).map(({ status, identity }) => `${status} ${identity}`),
    ['deleted proven', 'active proven', 'active proven'],
  )
  assert.deepEqual(await claimsOf(fixture), { [second]: ALL, [third]: ALL })
  await fixture.reconcile()
  assert.equal(
    (
      await fixture.ask<{ data: { difference: unknown[] }[] }>(listAccounts, { caller: two })
    ).data.flatMap(({ difference }) => difference).length,
    0,
  )
})

test('every operation that begins with an exchange account refuses duplicates', () => {
  // These continue work that began before the account became a duplicate.
  const CONTINUE = [
    'trading/step.ts',
    'exchange-transfers/step.ts',
    'exchange-transfers/to-exchange.ts',
    'exchange-transfers/from-exchange.ts',
  ]
  const commerce = new URL('../', import.meta.url)
  const using = ['trading', 'exchange-transfers'].flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, commerce))
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => ({
        name: `${folder}/${name}`,
        source: readFileSync(new URL(`${folder}/${name}`, commerce), 'utf8'),
      })),
  )
  const named = (pattern: RegExp) =>
    using.filter(({ source }) => pattern.test(source)).map(({ name }) => name)
  assert.deepEqual(named(/\bfindAccount\(/), [])
  assert.deepEqual(
    named(/\bexchange_accounts\b/).filter((name) => !CONTINUE.includes(name)),
    named(/\bassertCounted\(/),
  )
  assert.equal(named(/\bfindCounted\(/).length, 4)
})

test('an account linked earlier takes over from one that was identified first', async () => {
  const { fixture, ids } = await earlier()
  const [first, second] = ids as [string, string]
  await fixture.database.query(
    `update exchange_accounts set identity = 'proven', venue_account = 'id AA33' where id = $1`,
    [second],
  )
  await fixture.reconcile()
  assert.deepEqual(
    (await rowsOf(fixture)).map(({ identity }) => identity),
    ['proven', 'duplicate', 'proven'],
  )
  assert.equal((await claimsOf(fixture))[second], undefined)
  assert.equal((await claimsOf(fixture))[first], ALL)
})

test('a new key must belong to the same account at the exchange', async () => {
  const fixture = await open()
  fixture.kraken.accounts?.set('key', 'AA44').set('next', 'AA44').set('of-two', 'AA55')
  await fixture.ask(deleteAccount, { params: { id: fixture.accountId } })
  const { id } = await fixture.link()
  const two = await fixture.tenant('two')
  await fixture.link({ api_key: 'of-two' }, two)
  const change = (key: string) =>
    fixture.ask<Linked>(changeAccount, {
      params: { id },
      body: { api_key: key, api_secret: 'bmV3' },
    })
  const error = await rejection(change('of-two'))
  assert.deepEqual([error.code, error.field], ['INVALID_REQUEST', 'api_key'])
  assert.match(error.message, /belongs to another account at kraken than the linked one/)
  assert.equal((await change('next')).identity, 'proven')
  await forget(fixture)
  await fixture.database.query(
    `update exchange_accounts set identity = 'proven', venue_account = 'id AA55' where id <> $1`,
    [id],
  )
  assert.equal((await rejection(change('of-two'))).code, 'EXCHANGE_ACCOUNT_LINKED')
  const row = (await rowsOf(fixture)).find((each) => each.id === id)
  assert.deepEqual([row?.key_hint, row?.identity], ['…next', 'unread'])
})

test('of accounts that are the same, exactly one counts in every order of identification', () => {
  const identity = fc.constantFrom<Identity>('unread', 'proven', 'unproven', 'duplicate')
  fc.assert(
    fc.property(
      fc.array(identity, { minLength: 1, maxLength: 6 }),
      fc.infiniteStream(fc.nat()),
      (all, picks) => {
        let isCounted = false
        const linked = all.map((state, n) => {
          // The unique index permits one counted account.
          const is = (state === 'proven' || state === 'unproven') && !isCounted
          isCounted ||= is
          return {
            id: randomUUID(),
            created_at: new Date(n),
            identity: state === 'proven' || state === 'unproven' ? (is ? state : 'unread') : state,
          }
        })
        for (let at = 0; at < 12; at++) {
          const { id } = linked[(picks.next().value as number) % linked.length] as { id: string }
          const counted = countedOf(linked, id)
          // As settleIdentity stores it: rows that were not read yet are not found by the ID.
          for (const row of linked)
            if (row.id === id || row.identity !== 'unread')
              row.identity = row.id === counted ? 'proven' : 'duplicate'
          assert.equal(
            linked.filter((row) => row.identity === 'proven' || row.identity === 'unproven').length,
            1,
          )
        }
      },
    ),
  )
})
testEmittedEvents(() => database.get(), ['exchange_account.created', 'exchange_account.updated'])
