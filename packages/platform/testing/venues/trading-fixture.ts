import { randomUUID } from 'node:crypto'
import { parseJson, stringifyJson } from '@custody/request-auth'
import type { Database } from '../../src/core/database/pool.ts'
import { adminOf } from '../test-database.ts'
import { systemEnvironment } from '../../src/core/environment.ts'
import { Notifier } from '../../src/core/ledger/notifier.ts'
import { createAccount } from '../../src/commerce/exchanges/create-account.ts'
import { databaseNonces } from '../../src/commerce/exchanges/nonces.ts'
import { readAccount } from '../../src/commerce/exchanges/read-account.ts'
import { reconcileDue } from '../../src/commerce/exchanges/reconcile.ts'
import { Venues } from '../../src/commerce/exchanges/venues.ts'
import type { Caller, Endpoint } from '../../src/core/http/endpoint.ts'
import { readBody, readQuery } from '../../src/core/http/validate.ts'
import { createMetrics } from '../../src/core/metrics.ts'
import { Secrets } from '../../src/core/secrets.ts'
import { readTiers } from '../../src/core/settings/tiers.ts'
import type { Application } from '../../src/server/app/application.ts'
import { cancelOrder } from '../../src/commerce/trading/cancel-order.ts'
import { createOrder } from '../../src/commerce/trading/create-order.ts'
import { claimOrder } from '../../src/commerce/trading/lease.ts'
import { workOn } from '../../src/commerce/trading/loop.ts'
import { readOrder } from '../../src/commerce/trading/read-order.ts'
import { fixtureServices } from '../chains/chain-fixture.ts'
import { FakeKraken } from './fake-kraken.ts'
import { plain, PUBLIC_KEY } from '../harness.ts'

export interface Order {
  id: string
  status: string
  sub_status: string
  amount: string
  filled: string
  cost: string
  average_price: string | null
  reason: string | null
  price: string | null
  protection_price: string | null
  platform_fee: string
  fills: { id: string; amount: string; fee: string; fee_asset: string }[]
  exchange_order_id: string | null
  client_order_id: string
  version: string
  fees: { asset: string; amount: string }[]
  [field: string]: unknown
}
interface Account {
  id: string
  status: string
  balances: {
    asset: string
    available: string
    total: string
    usd: string | null
    price_usd: string | null
  }[]
  difference: { asset: string; ledger: string; venue: string; difference: string }[]
  [field: string]: unknown
}

/**
 * Orders of one or more tenants at a scripted Kraken, with real ccxt, endpoints, steps and
 * database. The test controls the time.
 */
export class TradingFixture {
  readonly database: Database
  now = 1_800_000_000_000
  readonly kraken = new FakeKraken(() => this.now)
  readonly services: Application
  caller!: Caller
  accountId = ''
  /** Logged warnings and alerts. */
  readonly warned: unknown[][] = []
  readonly alerts: unknown[][] = []
  /** Name of the commit at which the process ends, once. */
  dieAt: string | null = null

  constructor(database: Database) {
    this.database = database
    const environment = {
      ...systemEnvironment(),
      now: () => this.now,
      sleep: async (ms: number) => {
        this.now += ms
      },
      checkpoint: (name: string) => {
        if (name !== this.dieAt) return
        this.dieAt = null
        throw new Error('the process ended here')
      },
    }
    const silent = {
      info: () => undefined,
      warn: (...said: unknown[]) => this.warned.push(said),
      error: (...said: unknown[]) => this.alerts.push(said),
    }
    const kraken = (input: string | URL | Request, init?: RequestInit) =>
      this.kraken.fetch(input, init)
    this.services = fixtureServices(
      {
        environment,
        database,
        log: silent,
        metrics: createMetrics(),
        settings: { network: 'local', prepaidTiers: readTiers('FREE:0:10:0.50:0'), pollMs: 500 },
        aml: { secrets: new Secrets(new Uint8Array(32), environment) },
        prices: {
          price: (coin: string) =>
            coin === 'BTC'
              ? { price: 60_000n * 10n ** 12n, at: this.now, sources: [], stale: false }
              : null,
        },
        trading: { due: new Notifier(environment) },
        exchanges: new Venues({
          urls: { kraken: 'http://127.0.0.1:9' },
          only: ['kraken', 'binance'],
          environment,
          fetch: kraken as typeof fetch,
          nonces: databaseNonces(database),
        }),
      },
      {},
    )
  }

  async begin(): Promise<this> {
    await adminOf(this.database).query(
      `truncate workspaces, sub_accounts, api_users, ledger_accounts, ledger_entries, ledger_postings, prepaid_accounts, prepaid_volumes, events,
         exchange_accounts, exchange_balances, exchange_nonces, orders, order_fills cascade`,
    )
    this.caller = await this.tenant('one')
    this.accountId = (await this.link()).id
    return this
  }

  /** Creates another workspace, with 1,000 USD prepaid. */
  async tenant(workspace: string, prepaidUsd = 1000): Promise<Caller> {
    const one = async (sql: string, values: unknown[]) =>
      ((await this.database.one<{ id: string }>(sql, values)) as { id: string }).id
    const workspaceId = await one('insert into workspaces (name) values ($1) returning id', [
      workspace,
    ])
    const subAccountId = await one(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)
        returning id`,
      [workspaceId],
    )
    const apiKey = randomUUID()
    await this.database.query(
      `insert into api_users (api_key, sub_account_id, role, public_key_pem)
        values ($1, $2, 'full', $3)`,
      [apiKey, subAccountId, PUBLIC_KEY],
    )
    if (prepaidUsd > 0)
      await this.database.query('select prepaid_adjust($1, $2, $3, 0)', [
        workspaceId,
        randomUUID(),
        String(prepaidUsd * 1e6),
      ])
    return {
      apiKey,
      role: 'full',
      workspaceId,
      workspace,
      subAccountId,
      subAccount: 'main',
      subAccountIndex: 1,
    }
  }

  async ask<T = Record<string, unknown>>(
    endpoint: Endpoint<Application>,
    o: {
      body?: unknown
      params?: unknown
      query?: Record<string, unknown>
      caller?: Caller
      askedAt?: number
    } = {},
  ): Promise<T> {
    const answer = await endpoint.handler(
      {
        caller: o.caller ?? this.caller,
        body: endpoint.body ? readBody(endpoint.body, JSON.stringify(o.body ?? {})) : undefined,
        query: endpoint.query ? readQuery(endpoint.query, o.query ?? {}) : undefined,
        params: o.params,
        signed: undefined as never,
        askedAt: o.askedAt ?? this.services.environment.now(),
      },
      this.services,
    )
    return plain(parseJson(answer.text ?? stringifyJson(answer.body))) as T
  }

  link = (more: Record<string, unknown> = {}, caller = this.caller) =>
    this.ask<Account>(createAccount, {
      body: {
        exchange: 'kraken',
        label: 'main',
        api_key: 'key',
        api_secret: Buffer.from('secret').toString('base64'),
        ...more,
      },
      caller,
    })
  account = (id = this.accountId) => this.ask<Account>(readAccount, { params: { id } })
  create = (more: Record<string, unknown> = {}, caller?: Caller) =>
    this.ask<Order>(createOrder, {
      body: {
        exchange_account: this.accountId,
        market: 'BTC/USD',
        side: 'buy',
        type: 'limit',
        amount: '0.5',
        price: '60000',
        ...more,
      },
      ...(caller ? { caller } : {}),
    })
  read = (id: string) => this.ask<Order>(readOrder, { params: { id } })
  cancel = (id: string) => this.ask<Order>(cancelOrder, { params: { id } })

  /** Processes all work that is due now. */
  async work(): Promise<void> {
    for (
      let row = await claimOrder(this.services, []);
      row;
      row = await claimOrder(this.services, [])
    )
      await workOn(this.services, row)
  }

  /** Processes due work for this number of seconds, second by second. */
  async pass(seconds: number): Promise<void> {
    for (let at = 0; at < seconds; at++) {
      await this.work()
      this.now += 1000
    }
    await this.work()
  }

  /**
   * Advances the time by 31 seconds, because reconciliation accepts a difference only after half a
   * minute, and reconciles the accounts.
   */
  async reconcile(): Promise<void> {
    this.now += 31_000
    await this.database.query(
      'update exchange_accounts set reconcile_at = $1 where reconcile_at is not null',
      [new Date(this.now)],
    )
    await reconcileDue(this.services)
  }

  /** Returns the balances of the ledger by coin, and the fees that the platform charged. */
  async books(): Promise<Record<string, string>> {
    const rows = await this.database.query<{ kind: string; asset: string; balance: string }>(
      `select kind, asset, trim_scale(balance / case when asset = 'USD' then 1000000
        else 1000000000000000000 end)::text balance from ledger_accounts
       where balance <> 0 and kind not in ('chain', 'venue_outside') order by 1, 2`,
    )
    return Object.fromEntries(rows.map(({ kind, asset, balance }) => [`${kind} ${asset}`, balance]))
  }

  async events(id: string): Promise<string[]> {
    return (
      await this.database.query<{ said: string }>(
        `select replace(type, 'order.', '') || ' ' || coalesce(payload->>'status',
          '') || ' ' || coalesce(payload->>'sub_status', '') said from events
       where payload->>'id' = $1 order by id`,
        [id],
      )
    ).map(({ said }) => said)
  }
}
