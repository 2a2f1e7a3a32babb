import type { ApiRole } from '@custody/request-auth/roles'
import { createHash, randomUUID } from 'node:crypto'
import { lookup } from 'node:dns'
import { connect } from 'node:net'
import { after, before } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { loadRegistry, publicKeysBelow, type Curve } from '@custody/chains'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Database } from '../src/core/database/pool.ts'
import { systemEnvironment } from '../src/core/environment.ts'
import { Callers } from '../src/core/http/authentication/callers.ts'
import { endpoints } from '../src/server/app/endpoints.ts'
import { openApiWebhooks } from '../src/events/events/openapi.ts'
import type { Page } from '../src/core/http/page.ts'
import { buildServer } from '../src/core/http/server.ts'
import { panelFor } from '../src/server/app/panel.ts'
import { createPeople } from '../src/console-api/people/people.ts'
import { auditWritesTo } from '../src/console-api/people/audit-writes.ts'
import { post } from '../src/core/ledger/post.ts'
import { createExchanges } from '../src/commerce/exchanges/exchanges.ts'
import { createMetrics } from '../src/core/metrics.ts'
import { connectAll } from '../src/server/app/connect.ts'
import { Networks } from '../src/core/engine/networks.ts'
import { fixtureServices } from './chains/chain-fixture.ts'
import { Notifier } from '../src/core/ledger/notifier.ts'
import { Feed } from '../src/core/ledger/feed.ts'
import { createWebhooks } from '../src/events/webhooks/webhooks.ts'
import { DEFAULT_TIERS, readTiers } from '../src/core/settings/tiers.ts'
import { Secrets } from '../src/core/secrets.ts'
import type { Application } from '../src/server/app/application.ts'
import { NodeUnavailable } from '../src/core/signing/nodes.ts'
import { useDatabase, type UseDatabaseOptions } from './deposits-support.ts'
import { call, PUBLIC_KEY, type User } from './harness.ts'
import type { ManualClock } from './manual-clock.ts'
import { HANG_MS } from '../../../testing/wait-for.ts'

/**
 * The real API on a real PostgreSQL, in this process. No chain is reachable and there are no signer
 * nodes. Wallets, addresses, lists and all requests that need no chain work normally.
 */
export class Api {
  base = ''
  services!: Application
  server!: FastifyInstance
  now: () => number = Date.now
  /** Pages that the server serves in addition to the API. */
  pages: readonly Page<Application>[] = []
  /**
   * Resolves when the API has started. Hooks of one file do not wait for each other, so hooks that
   * need the API await this promise.
   */
  started: Promise<void> = Promise.resolve()
  /**
   * Functions that stop what the tests of a file started in addition to the API. They run before
   * the API is stopped.
   */
  readonly beside: (() => Promise<unknown>)[] = []
  readonly #database: ReturnType<typeof useDatabase>
  readonly #clock: ManualClock | undefined

  get database(): Database {
    return this.#database.get()
  }

  /** The superuser's connections to the database. */
  get admin(): Database {
    return this.#database.admin()
  }

  constructor(database: ReturnType<typeof useDatabase>, clock?: ManualClock) {
    this.#database = database
    this.#clock = clock
    if (clock) this.now = clock.now
  }

  async start(settings: Partial<Application['settings']> = {}): Promise<void> {
    const database = this.#database.get()
    const registry = loadRegistry(settings.network ?? 'local')
    const environment = {
      ...systemEnvironment(),
      ...(this.#clock ? { sleep: this.#clock.sleep } : {}),
      now: () => this.now(),
    }
    const silent = {
      info: () => undefined,
      warn: () => undefined,
      error: (...what: unknown[]) => console.error(...what),
    }
    const unreachable: typeof fetch = async () => {
      throw new TypeError('fetch failed')
    }
    const seed = createHash('sha256').update('keys of the tests of the API').digest()
    const keyOf = (curve: Curve) => ({
      curve,
      publicKey:
        curve === 'secp256k1' ? secp256k1.getPublicKey(seed, true) : ed25519.getPublicKey(seed),
      chainCode: seed,
    })
    const provider = { screen: async () => null, verifyToken: async () => true }
    const services: Application = fixtureServices(
      {
        settings: {
          network: 'local',
          rateLimit: 100_000,
          metricsAllow: ['127.0.0.1/32'],
          rateScope: 'key',
          authLegacy: false,
          trustProxy: 0,
          prepaidTiers: readTiers(DEFAULT_TIERS),
          pollMs: 500,
          aml: { urls: { CHAINALYSIS: null, ELLIPTIC: null, TRM: 'http://127.0.0.1:9' } },
          ...settings,
        },
        environment,
        database,
        registry,
        log: silent,
        metrics: createMetrics(),
        devnet: null,
        outbox: new Notifier(environment),
        work: new Notifier(environment),
        feed: new Feed({ database, environment, log: silent as unknown as Logger, pollMs: 500 }),
        exchanges: createExchanges({
          settings: { network: settings.network ?? 'local' },
          devnetUrl: 'http://127.0.0.1:9',
          database,
          environment,
          fetch: unreachable,
        }),
        trading: { due: new Notifier(environment) },
        webhooks: createWebhooks({
          services: () => services,
          environment,
          allow: ['127.0.0.0/8', '::1/128'],
          resolve: lookup,
        }),
        callers: new Callers(database, environment),
        people: createPeople({
          database,
          environment,
          secrets: new Secrets(new Uint8Array(32), environment),
          rateLimit: 100_000,
          passwordCost: { log2N: 8, r: 8, p: 1 },
        }),
        keys: {
          get: async (workspaceId: string, curve: Curve) => ({
            ...keyOf(curve),
            at: tweaked(publicKeysBelow(keyOf(curve)), await this.#number(workspaceId)),
          }),
        },
        signers: {
          peers: [1, 2, 3].map((node) => ({ node })),
          verify: () => true,
          isPenalised: () => false,
          call: async (node: number, _method: string, path: string) => this.askNode(node, path),
        },
        aml: {
          providers: { CHAINALYSIS: provider, ELLIPTIC: provider, TRM: provider },
          sanctions: { has: () => false },
          secrets: new Secrets(new Uint8Array(32), environment),
        },
        prices: {
          price: () => ({ price: 10n ** 12n, at: this.now(), sources: ['test'], stale: false }),
        },
        readiness: async () => ({ ready: true, checks: { database: 'ok' } }),
      },
      {},
    )
    const nowhere = Object.fromEntries(
      registry.networks.map(({ code }) => [
        code,
        { endpoints: [{ url: 'http://127.0.0.1:9' }], quorum: 1 },
      ]),
    )
    Object.assign(services, { networks: new Networks(connectAll(services, nowhere, unreachable)) })
    this.services = services
    // The chains cannot report their heights, so the heights are written to the database.
    for (const { code } of registry.networks)
      await database.query(
        `insert into network_scans (network, height, tip_height, final_height) values ($1, 1, 1, 1)
          on conflict do nothing`,
        [code],
      )
    this.server = await buildServer(this.services, endpoints, {
      pages: this.pages,
      webhooks: openApiWebhooks,
      others: panelFor(services),
      auditWrite: auditWritesTo(database),
    })
    this.base = await this.server.listen({ port: 0, host: '127.0.0.1' })
  }

  async user(
    workspace: string = randomUUID(),
    o: { subAccount?: string; role?: ApiRole; rateLimit?: number } = {},
  ): Promise<User & { workspaceId: string; subAccountId: string }> {
    const database = this.#database.get()
    const apiKey = randomUUID()
    const one = async (sql: string, values: unknown[]) =>
      (await database.one<{ id: string }>(sql, values))?.id as string
    const workspaceId = await one(
      `insert into workspaces (name) values ($1) on conflict (name) do update
        set name = excluded.name returning id`,
      [workspace],
    )
    await database.query('select prepaid_adjust($1, $2, 1000000000, 0)', [
      workspaceId,
      randomUUID(),
    ])
    const subAccountId = await one(
      `insert into sub_accounts (workspace_id, name, path_index) 
       values ($1, $2, 1 + (select count(*) from sub_accounts where workspace_id = $1))
       on conflict (workspace_id, name) do update set name = excluded.name returning id`,
      [workspaceId, o.subAccount ?? 'main'],
    )
    await database.query(
      `insert into api_users (api_key, sub_account_id, role, public_key_pem, rate_limit)
        values ($1, $2, $3, $4, $5)`,
      [apiKey, subAccountId, o.role ?? 'full', PUBLIC_KEY, o.rateLimit ?? null],
    )
    return { apiKey, base: this.base, workspace, workspaceId, subAccountId }
  }

  /** Credits an amount to a wallet without a deposit. */
  async fund(
    user: { workspaceId: string; subAccountId: string },
    asset: string,
    amount: bigint,
  ): Promise<void> {
    const wallet = await this.database.one<{ id: string }>(
      'select id from wallets where sub_account_id = $1 and asset = $2',
      [user.subAccountId, asset],
    )
    const scope = { workspace: user.workspaceId, asset }
    await post(this.database, 'deposit', randomUUID(), [
      { ...scope, kind: 'chain', amount: -amount },
      { ...scope, wallet: wallet?.id as string, kind: 'available', amount },
    ])
  }

  /**
   * Replaces the signer nodes: they confirm every void and are unavailable for all other requests.
   */
  askNode(node: number, path: string): unknown {
    if (path !== '/void') throw new NodeUnavailable(node, 'is away')
    const record = {
      node,
      intent: 'ab',
      transaction_id: randomUUID(),
      rule: null,
      height: 1,
      voided_at: 1,
      signed: [],
      unfinished: 0,
    }
    return { voided: true, record, signature: 'cd', signed_hashes: [], unfinished: 0 }
  }

  /** Sends bytes to the server and returns its response. The server closes the connection. */
  raw(bytes: string | Uint8Array): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(this.base).port), '127.0.0.1', () =>
        socket.write(bytes),
      )
      let text = ''
      socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
      socket.on('close', () => resolve(text))
      socket.on('error', reject)
      socket.setTimeout(HANG_MS, () => socket.destroy(new Error('no answer')))
    })
  }

  async #number(workspaceId: string): Promise<number> {
    const row = await this.#database.get().one<{ at: number }>(
      `select count(*)::int at from workspaces where created_at < (select created_at
          from workspaces where id = $1)`,
      [workspaceId],
    )
    return row?.at ?? 0
  }
}

/** All workspaces share one seed, and each uses its own branch of it. */
const tweaked =
  (at: ReturnType<typeof publicKeysBelow>, branch: number) =>
  ([sub, chain, index]: readonly number[]) =>
    at([Number(sub) + branch * 1000, Number(chain), Number(index)])

/** Body of an error response. */
export interface Problem {
  message: string
  code: string
  field?: string
}

/**
 * Returns a function that sends requests as a user who is created only after the API has started.
 */
export const asking = (user: () => User) => (method: string, path: string, body?: unknown) =>
  call<Problem>(user(), method, path, body)

/** Replaces the parameters of a path by valid values. */
export const concrete = (path: string): string =>
  path
    .replaceAll(/\{(?:id|delivery)\}/g, '00000000-0000-4000-8000-000000000000')
    .replace('{asset}', 'BTC')
    .replace('{network}', 'ETH')
    .replace('{hash}', 'ab'.repeat(32))

/**
 * Starts the API for the tests of one file.
 * @param clock clock of the API and its database; default: the clock of this machine
 */
export function useApi(
  settings: Partial<Application['settings']> = {},
  pages: readonly Page<Application>[] = [],
  clock?: ManualClock,
  options: UseDatabaseOptions = {},
): Api {
  const onEvent = () => api.services.outbox.ring()
  const database = useDatabase({
    ...options,
    onEvent,
    ...(clock ? { clock } : { now: () => api.now() }),
  })
  const api: Api = new Api(database, clock)
  api.pages = pages
  api.started = database.started.then(() => api.start(settings))
  before(() => api.started)
  after(async () => {
    for (const end of api.beside) await end()
    api.services.webhooks.sender.close()
    await api.server.close()
  })
  return api
}
