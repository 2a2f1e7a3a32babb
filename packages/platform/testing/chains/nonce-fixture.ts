import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  familyOf,
  loadRegistry,
  OMNIBUS_INDEX,
  pathOf,
  TANK_SUB_ACCOUNT,
  type Network,
} from '@custody/chains'
import { signRequest } from '@custody/request-auth'
import type { Order } from '../../../signer/src/policy/order.ts'
import { audit } from '../../src/server/audit/audit.ts'
import type { Database } from '../../src/core/database/pool.ts'
import { systemEnvironment } from '../../src/core/environment.ts'
import { ApiError } from '../../src/core/errors.ts'
import type { Caller } from '../../src/core/http/endpoint.ts'
import { post } from '../../src/core/ledger/post.ts'
import { createMetrics } from '../../src/core/metrics.ts'
import { readTiers } from '../../src/core/settings/tiers.ts'
import { scanLoop } from '../../src/custody/deposits/scanner.ts'
import type { Chain, ChainContext } from '../../src/core/engine/chain.ts'
import { Networks } from '../../src/core/engine/networks.ts'
import type { Application } from '../../src/server/app/application.ts'
import { cancelTransaction } from '../../src/custody/transactions/cancel.ts'
import { createTransaction } from '../../src/custody/transactions/create-transaction.ts'
import { RETRY_MAX_MS, runStep } from '../../src/core/engine/run.ts'
import { claim, LEASE_MS, wake } from '../../src/core/engine/lease.ts'
import { chainOver, fixtureServices } from './chain-fixture.ts'
import { withOperator } from '../accepting-operator.ts'
import { truncateTables } from '../truncate-tables.ts'
import { PRIVATE_KEY, PUBLIC_KEY } from '../harness.ts'
import { InProcessNodes, publicKeyAt, type Fault } from '../in-process-nodes.ts'
import { BASE_FEE, ScriptedEvm } from './scripted-evm.ts'
import { ScriptedXrp } from './scripted-xrp.ts'

/**
 * Runs transfers through the real steps, a real database and the rules of real nodes, on a chain in
 * memory. The clock does not advance. If only time can make a row due, all rows are moved into the
 * past by that time, so no test sleeps and the machine's speed changes nothing.
 */
const NOW = Date.now()
/**
 * Clock of the database (`useDatabase({ migrated: true, now })`), the services, the nodes and the
 * callers.
 */
export const now = (): number => NOW
const registry = loadRegistry('local')
const PRICE = { maxFeePerGas: 2n * BASE_FEE + 10n ** 8n, maxPriorityFeePerGas: 10n ** 8n }
/**
 * A chain in memory: balances by address, waiting transactions, and included transactions by hash.
 */
interface StagedChain {
  readonly balances: Map<string, bigint>
  readonly pool: ReadonlyMap<string, unknown>
  readonly mined: ReadonlyMap<string, { from: string; nonce: number }>
  readonly height: number
  /** Produces a block with the transactions that are next in order. */
  mine(): void
  /**
   * For chains on which depth decides finality: the block at which the scan begins. Later blocks
   * count once the scan has read them.
   */
  readonly head?: { height: number; hash: string; parent: string }
}
/** The environment of the transfers: balances, receivers, and whether a gas tank pays the fees. */
export interface NonceAddress {
  code: string
  held: bigint
  to: string
  tank: boolean
  chain: StagedChain
  connect(context: ChainContext, network: Network): Chain
}
function place(
  code: string,
  chain: ScriptedEvm | ScriptedXrp,
  price: unknown,
  rest: Pick<NonceAddress, 'held' | 'to' | 'tank'>,
): NonceAddress {
  const client = {
    ...chain.client,
    feeRates: async () => ({ low: price, medium: price, high: price }),
  }
  return {
    code,
    chain,
    ...rest,
    connect: (context, network) => chainOver(context, network, client),
  }
}
export const NONCE_ADDRESSES = {
  ETH: () =>
    place('ETH', new ScriptedEvm(), PRICE, {
      held: 10n ** 21n,
      to: `0x${'ab'.repeat(20)}`,
      tank: true,
    }),
  XRP: () =>
    place('XRP', new ScriptedXrp(), 12n, {
      held: 10n ** 15n,
      to: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
      tank: false,
    }),
}

/** mulberry32 random generator: returns the same numbers for the same seed. */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296
  }
}

/** Planned outcome of a transfer; nodes refuse `fuel` and `pay` at that step. */
export type Outcome = 'good' | 'fuel' | 'pay' | 'cancelled'

const READ_AHEAD = 1_000_000

/** One network with its gas tank, two sub-accounts, three nodes, and injected faults. */
export class NonceFixture {
  readonly database: Database
  readonly place: NonceAddress
  readonly code: string
  readonly chain: StagedChain
  readonly network: Network
  readonly nodes: InProcessNodes
  readonly random: () => number
  readonly fates = new Map<string, Outcome>()
  readonly callers: Caller[] = []
  /** Total time in milliseconds by which rows were moved into the past. */
  waitedMs = 0
  /** Number of times that a worker ended between two steps. */
  processesEnded = 0
  /** Tokens of the requests that nodes refuse, by step. */
  readonly refused = new Map<string, 'fuel' | 'pay'>()
  faults = 0
  readonly #requested = new Set<string>()
  #isWorking = false
  #scan: (() => Promise<unknown>) | null = null
  services!: Application

  constructor(database: Database, seed: number, place: NonceAddress) {
    this.database = database
    this.place = place
    this.code = place.code
    this.chain = place.chain
    this.network = registry.network(place.code) as Network
    this.random = chance(seed)
    this.nodes = new InProcessNodes(3, now)
    this.nodes.fault = (order) => this.#fault(order)
  }

  #fault({ purpose }: Order): Fault {
    const about =
      purpose.kind === 'fuel'
        ? [purpose.for, ...(purpose.beside ?? []).map((each) => each.for)]
        : [purpose]
    const random = this.random()
    const refused = about.flatMap((each) =>
      'request' in each && this.refused.get(each.request.token) === purpose.kind
        ? [each.request.token]
        : [],
    )
    for (const token of refused) {
      const isFirst = !this.#requested.has(token)
      // One refused transfer blocks the shared fuel transaction, so the platform then requests a
      // signature for each transfer separately.
      if (about.length > 1) return 'refuse'
      this.#requested.add(token)
      // The node signs, the response is lost, and the node refuses from then on. No transfer may
      // wait for a signature that only the nodes have.
      return purpose.kind === 'fuel' && isFirst && random < 4 * this.faults ? 'lost' : 'refuse'
    }
    if (random >= this.faults) return undefined
    return random < this.faults / 2 ? 'lost' : 'away'
  }

  addressOf(sub: number): string {
    return familyOf(this.network).address(
      this.network,
      publicKeyAt(pathOf(this.network, sub, OMNIBUS_INDEX)),
    )
  }

  async open(): Promise<void> {
    const { code, network } = this
    const { held, tank } = this.place
    await truncateTables(
      this.database,
      'workspaces',
      'ledger_entries',
      'signing_accounts',
      'network_scans',
      'blocks',
    )
    const checkpoint = () => {
      if (!this.#isWorking || this.random() >= this.faults / 3) return
      this.processesEnded++
      throw new Error('the process ended here')
    }
    const environment = {
      ...systemEnvironment(),
      now,
      checkpoint,
      bytes: (length: number) => Uint8Array.from({ length }, () => Math.floor(this.random() * 256)),
    }
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
    this.services = fixtureServices(
      {
        environment,
        database: this.database,
        log: silent,
        signers: this.nodes.signers,
        metrics: createMetrics(),
        keys: { get: async () => ({ at: publicKeyAt }) },
        settings: {
          network: 'local',
          pollMs: 0,
          prepaidTiers: readTiers('FREE:0:0:0:0'),
          feeBumpAfterMs: 0,
          auditEveryMs: 0,
          sweep: {},
        },
        prices: { price: () => null },
        aml: { providers: {}, sanctions: { has: () => false } },
      },
      {},
    )
    Object.assign(this.services, {
      networks: new Networks([this.place.connect(this.services, network)]),
    })
    const one = async (sql: string, values: unknown[]) =>
      (await this.database.one<{ id: string }>(sql, values))?.id as string
    const workspace = await one(`insert into workspaces (name) values ('acme') returning id`, [])
    const { head } = this.chain
    // A chain without blocks to scan counts as read far ahead: nothing is settled in an unread block.
    const read = head ?? { height: READ_AHEAD, hash: 'read', parent: 'read' }
    await this.database.query('insert into network_scans (network, height) values ($1, $2)', [
      code,
      read.height,
    ])
    await this.database.query(
      'insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4)',
      [code, read.height, read.hash, read.parent],
    )
    if (head) {
      const loop = scanLoop(
        this.services,
        this.services.networks.get(code),
        async () => new Set([code]),
      )
      const pass = withOperator(this.database, () => loop.run(new AbortController().signal))
      this.#scan = async () => {
        while (await pass());
      }
    }
    const book = (kind: 'tank' | 'available', wallet?: string) =>
      this.database.transaction((tx) =>
        post(tx, 'deposit', randomUUID(), [
          { workspace, asset: code, kind: 'chain', amount: -held },
          { workspace, ...(wallet ? { wallet } : {}), asset: code, kind, amount: held },
        ]),
      )
    for (const sub of tank ? [TANK_SUB_ACCOUNT, 1, 2] : [1, 2])
      this.chain.balances.set(this.addressOf(sub), held)
    if (tank) {
      const address = this.addressOf(TANK_SUB_ACCOUNT)
      await this.database.query(
        `insert into chain_addresses (network, address, workspace_id, path_index, kind)
          values ($1, $2, $3, 0, 'tank')`,
        [code, address, workspace],
      )
      await this.database.query(
        'insert into gas_tanks (workspace_id, network, address, threshold) values ($1, $2, $3, 0)',
        [workspace, code, address],
      )
      await book('tank')
    }
    for (const sub of [1, 2]) {
      const subAccount = await one(
        'insert into sub_accounts (workspace_id, name, path_index) values ($1, $2, $3) returning id',
        [workspace, `sub-${sub}`, sub],
      )
      const wallet = await one(
        `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $3)
          returning id`,
        [workspace, subAccount, code],
      )
      await this.database.query(
        `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
          kind)
         values ($4, $1, $2, $3, 0, 'omnibus')`,
        [this.addressOf(sub), workspace, subAccount, code],
      )
      await book('available', wallet)
      const apiKey = randomUUID()
      this.nodes.enrol({
        api_key: apiKey,
        public_key_pem: PUBLIC_KEY,
        role: 'full',
        workspace: 'acme',
        sub_account: sub,
      })
      this.callers.push({
        apiKey,
        role: 'full',
        workspaceId: workspace,
        workspace: 'acme',
        subAccountId: subAccount,
        subAccount: `sub-${sub}`,
        subAccountIndex: sub,
      })
    }
  }

  async create(caller: Caller, fate: Outcome): Promise<string> {
    const body = {
      asset: this.code,
      amount: '0.001',
      destination_address: this.place.to,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
    }
    const signed = await signRequest({
      apiKey: caller.apiKey,
      privateKey: PRIVATE_KEY,
      method: 'POST',
      uri: '/dac/v1/transaction',
      body: JSON.stringify(body),
      now: Math.floor(NOW / 1000),
    })
    if (fate === 'fuel' || fate === 'pay') this.refused.set(signed.token, fate)
    const answer = await createTransaction.handler(
      {
        caller,
        body,
        signed,
        query: undefined,
        params: undefined,
        askedAt: this.services.environment.now(),
      },
      this.services,
    )
    const { id } = JSON.parse(answer.text as string) as { id: string }
    this.fates.set(id, fate)
    return id
  }

  async cancel(id: string): Promise<boolean> {
    const row = await this.database.one<{ sub_account_id: string }>(
      'select sub_account_id from transactions where id = $1',
      [id],
    )
    const caller = this.callers.find((each) => each.subAccountId === row?.sub_account_id) as Caller
    const signed = await signRequest({
      apiKey: caller.apiKey,
      privateKey: PRIVATE_KEY,
      method: 'POST',
      uri: `/dac/v1/transaction/${id}/cancel`,
      body: '{}',
      now: Math.floor(NOW / 1000),
    })
    try {
      await cancelTransaction.handler(
        {
          caller,
          body: {},
          signed,
          query: undefined,
          params: { id },
          askedAt: this.services.environment.now(),
        },
        this.services,
      )
      return true
    } catch (error) {
      if (error instanceof ApiError) return false
      throw error
    }
  }

  /** Wakes the transfers that wait for a new block, through the scan if the network has one. */
  async scan(): Promise<void> {
    await (this.#scan ? this.#scan() : wake(this.database, this.code))
  }

  /**
   * Runs due work as the workers do. If nothing is due it produces a block, and if no block can
   * change anything it moves all rows into the past until the next one is due.
   * @param mostMs bound of `waitedMs` without faults; each process that ended may add the lease and
   *   the longest retry pause
   * @returns whether any work was left
   */
  async turn(mostMs: number): Promise<boolean> {
    const due = await claim(this.services, 16)
    if (due.length > 0) {
      this.#isWorking = true
      await Promise.all(due.map((row) => runStep(this.services, row)))
      this.#isWorking = false
      return true
    }
    const pooled = this.#pooled()
    if (pooled !== '' && pooled !== this.#stuckPool) this.#buriedAt = this.chain.height + 4
    if (this.chain.height < this.#buriedAt) {
      this.chain.mine()
      // All transactions in the pool wait for a nonce that no transaction has used yet, so more
      // blocks cannot include them.
      if (this.#pooled() === pooled) this.#stuckPool = pooled
      await this.scan()
      return true
    }
    const next = await this.database.one<{ wait: string | null }>(
      `select extract(epoch from min(greatest(next_run_at,
        lease_until)) - $1::timestamptz) * 1000 wait from transactions
       where status = 'pending' and next_run_at is not null`,
      [this.database.now()],
    )
    if (next === undefined || next.wait === null) return false
    const wait = Math.max(1, Math.ceil(Number(next.wait)))
    this.waitedMs += wait
    const bound = mostMs + this.processesEnded * (LEASE_MS + RETRY_MAX_MS)
    assert.ok(
      this.waitedMs <= bound,
      `rows have waited ${this.waitedMs} ms of ${bound} ms: ${JSON.stringify(await this.pending())}; ${JSON.stringify(await this.#newestNonces())}`,
    )
    await this.database.query(
      `update transactions set next_run_at = next_run_at - $1 * interval '1 millisecond',
         lease_until = lease_until - $1 * interval '1 millisecond',
         created_at = created_at - $1 * interval '1 millisecond' where status = 'pending'`,
      [wait],
    )
    return true
  }

  /** Returns a string that identifies the content of the pool; empty if the pool is empty. */
  #pooled(): string {
    return [...this.chain.pool.keys()].sort().join(' ')
  }

  /** Content of the pool when the last block included none of its transactions. */
  #stuckPool = ''
  #buriedAt = 0

  async run(mostMs: number): Promise<void> {
    while (await this.turn(mostMs));
  }

  /**
   * Returns whether signed transactions wait for a nonce that no transaction of the platform uses: the
   * nodes have signed one that they refused afterwards, and those behind it.
   */
  async isGapLeft(): Promise<boolean> {
    const left = await this.database.one(
      `select 1 from chain_transactions c where c.state = 'SIGNED' and c.nonce > (
         select min(f.nonce) from chain_transactions f where f.account = c.account)
       and not exists (select 1 from chain_transactions b
         where b.account = c.account and b.nonce = c.nonce - 1 and b.state <> 'VOID')
       and not exists (select 1 from transactions
         where status = 'pending' and state in ('QUEUED', 'SIGNING', 'VOIDING')) limit 1`,
    )
    return left !== undefined
  }

  async pending(): Promise<unknown[]> {
    return this.database.query(
      `select kind, state, last_error, plan->>'reason' reason, count(*)::int from transactions
       where status = 'pending' group by 1, 2, 3, 4 order by 5 desc limit 10`,
    )
  }

  /** Transactions with the highest nonces of accounts that wait for a block, for a failed assertion. */
  async #newestNonces(): Promise<unknown[]> {
    return this.database.query(
      `select c.account, c.nonce::int, c.state, c.attempt, c.hash, t.kind, t.state of_state,
         t.failure_reason
       from chain_transactions c
         join transactions t on t.id = c.transaction_id and t.workspace_id = c.workspace_id
       where c.account in (select account from chain_transactions where state in ('BUILT', 'SIGNED'))
       order by c.account, c.nonce desc, c.attempt limit 30`,
    )
  }

  /** Checks the properties that must hold when all transfers have ended. */
  async check(): Promise<Record<string, number>> {
    assert.deepEqual(await this.pending(), [])
    const ended = await this.database.query<{
      id: string
      status: string
      state: string
      failure_reason: string | null
    }>(`select id, status, state, failure_reason from transactions where kind = 'WITHDRAWAL'`)
    const counts: Record<string, number> = {}
    for (const { id, status, state, failure_reason: reason } of ended) {
      const fate = this.fates.get(id) as Outcome
      if (fate === 'good') assert.equal(status, 'confirmed', `${reason}`)
      if (fate === 'fuel' || fate === 'pay') assert.match(reason ?? '', /reject/)
      const name = `${fate} ${state}`
      counts[name] = (counts[name] ?? 0) + 1
    }
    for (const sub of [TANK_SUB_ACCOUNT, 1, 2]) {
      const account = this.addressOf(sub)
      const used = [...this.chain.mined.values()]
        .filter(({ from }) => from === account)
        .map(({ nonce }) => nonce)
        .sort((a, b) => a - b)
      assert.deepEqual(
        used,
        used.map((_, at) => (used[0] as number) + at),
        'nonces are used one after the other',
      )
      const settled = await this.database.query<{ nonce: string }>(
        `select distinct nonce from chain_transactions where account = $1 and state = 'CONFIRMED'
          order by nonce`,
        [account],
      )
      assert.deepEqual(
        settled.map(({ nonce }) => Number(nonce)),
        used,
      )
    }
    assert.deepEqual(
      await this.database.query(
        `select 1 from chain_transactions where state in ('BUILT', 'SIGNED', 'INCLUDED')`,
      ),
      [],
    )
    const report = await audit(this.services)
    assert.deepEqual([report.differences, report.dust], [[], []])
    const left = await this.database.query(
      `select kind, balance::text from ledger_accounts where kind in ('reserved', 'tank_reserved',
        'float_reserved') and balance <> 0`,
    )
    assert.deepEqual(left, [])
    return counts
  }

  close(): void {
    this.nodes.close()
  }
}
