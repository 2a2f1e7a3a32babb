import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  loadRegistry,
  parseAmount,
  RpcUnavailable,
  type Asset,
  type Curve,
  type Fetch,
} from '@custody/chains'
import { signRequest } from '@custody/request-auth'
import type { Devnet } from '../../../devnet/src/devnet.ts'
import type { LocalChain } from '../../../devnet/src/local-chain.ts'
import { createAddress } from '../../src/custody/addresses/create-address.ts'
import { audit } from '../../src/server/audit/audit.ts'
import type { Database } from '../../src/core/database/pool.ts'
import type { Chain } from '../../src/core/engine/chain.ts'
import { compareLoop } from '../../src/custody/deposits/compare-blocks.ts'
import { scanLoop } from '../../src/custody/deposits/scanner.ts'
import { systemEnvironment } from '../../src/core/environment.ts'
import { fillTanksLoop } from '../../src/custody/gas-tanks/ensure-tank.ts'
import type { Caller } from '../../src/core/http/endpoint.ts'
import { devnetControl, localEndpoints } from '../../src/server/app/local/local.ts'
import { post } from '../../src/core/ledger/post.ts'
import { createMetrics } from '../../src/core/metrics.ts'
import { connectAll } from '../../src/server/app/connect.ts'
import { reportUnreadable } from '../../src/server/app/health/report-unreadable.ts'
import { Networks } from '../../src/core/engine/networks.ts'
import { fixtureServices } from './chain-fixture.ts'
import type { NetworkEndpoints } from '../../src/core/settings/configuration.ts'
import { readTiers } from '../../src/core/settings/tiers.ts'
import type { Application } from '../../src/server/app/application.ts'
import { cancelTransaction } from '../../src/custody/transactions/cancel.ts'
import { createTransaction } from '../../src/custody/transactions/create-transaction.ts'
import type { TransactionRow } from '../../src/core/engine/transaction.ts'
import { runStep } from '../../src/core/engine/run.ts'
import { speedUp } from '../../src/custody/transactions/speed-up.ts'
import { createWallet } from '../../src/custody/wallets/create-wallet.ts'
import { claim } from '../../src/core/engine/lease.ts'
import type { Order } from '../../../signer/src/policy/order.ts'
import { withOperator } from '../accepting-operator.ts'
import { truncateTables } from '../truncate-tables.ts'
import { PRIVATE_KEY, PUBLIC_KEY } from '../harness.ts'
import type { ManualClock } from '../manual-clock.ts'
import { InProcessNodes } from '../in-process-nodes.ts'
import { WholeKeys } from '../../../signer/testing/whole-keys.ts'

/**
 * Runs one family's transfers in one process, with the API's functions, the real steps, a real
 * database, the real client, the family's local chain and the rules of real nodes. A block is mined
 * when no other work is due. The fixture advances the clock to the next due row instead of
 * sleeping.
 */
const registry = loadRegistry('local')
/**
 * Maximum number of rounds. Every test ends within it, whatever fails; more rounds mean an endless
 * loop.
 */
const ROUNDS_MAX = 400
/** Maximum total wait in milliseconds. A transaction with an expiry expires earlier. */
const WAITED_MS_MAX = 3 * 3_600_000

const OPERATION_MS = 1

export interface WalletAddress {
  code: string
  to: string
  held: string
  amount: string
}

// oxlint-disable-next-line typescript/no-explicit-any -- any endpoint's handler
type AnyEndpoint = any

export class FamilyFixture {
  readonly database: Database
  readonly place: WalletAddress
  readonly asset: Asset
  readonly nodes: InProcessNodes
  readonly services: Application
  caller!: Caller
  walletId = ''
  source = ''
  /** Name of the commit at which the process ends, once. */
  crashAt: string | null = null
  /** Whether {@link scan} also compares the blocks of several endpoints that must agree. */
  compares = true
  /** Time in milliseconds by which {@link turn} has advanced the clock. */
  turnedMs = 0
  readonly #clock: ManualClock
  readonly #devnet: Devnet
  /** Whether the operator accepts reorganisations of final blocks at once. */
  accepts = true
  #scan: () => Promise<boolean>
  #fill: () => Promise<boolean>

  /**
   * Creates a fixture of one network.
   * @param ask function that sends requests to endpoints; a test may change the responses
   * @param endpoints endpoints of the network; default: the local chain
   */
  constructor(
    database: Database,
    devnet: Devnet,
    place: WalletAddress,
    clock: ManualClock,
    ask: Fetch = fetch,
    endpoints?: NetworkEndpoints,
  ) {
    this.database = database
    this.place = place
    this.#devnet = devnet
    this.asset = registry.asset(place.code) as Asset
    // The chain's clock is at its start time, so the fixture's clock starts there too.
    clock.reset()
    this.#clock = clock
    // Each fixture has a new seed, so that no address of an earlier test is used again.
    const keys = new WholeKeys(nextSeed++)
    this.nodes = new InProcessNodes(3, clock.now, keys)
    const environment = {
      ...systemEnvironment(),
      now: clock.now,
      sleep: clock.sleep,
      checkpoint: (name: string) => this.#checkpoint(name),
    }
    const silent = {
      info: () => undefined,
      warn: () => undefined,
      error: () => undefined,
      debug: () => undefined,
    }
    this.services = fixtureServices(
      {
        environment,
        database,
        log: silent,
        signers: this.nodes.signers,
        metrics: createMetrics(),
        keys: { get: async (_workspace: string, curve: Curve) => ({ at: keys.at[curve] }) },
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
        devnet: devnetControl(devnet.url),
      },
      {},
    )
    const networks = registry.networks.filter(({ code }) => code === place.code)
    const report = reportUnreadable(this.services.log, this.services.metrics)
    const [connected] = connectAll(
      { ...this.services, report },
      endpoints ? { [place.code]: endpoints } : localEndpoints(devnet.url, networks),
      ask,
      endpoints && { metrics: this.services.metrics, log: this.services.log },
    ) as [Chain]
    Object.assign(this.services, { networks: new Networks([connected]) })
    const loop = scanLoop(this.services, connected, async () => new Set([place.code]))
    const { network, agreement } = connected
    const comparison = agreement && compareLoop(this.services, { network, agreement }, () => true)
    const { signal } = new AbortController()
    const compare = async () => {
      if (!comparison || !this.compares) return false
      try {
        return await comparison.run(signal)
      } catch (error) {
        // The platform repeats it later.
        if (error instanceof RpcUnavailable) return false
        throw error
      }
    }
    const pass = () => loop.run(signal)
    const accepting = withOperator(database, pass)
    this.#scan = async () => (await (this.accepts ? accepting() : pass())) || compare()
    const fill = fillTanksLoop(this.services)
    this.#fill = () => fill.run(new AbortController().signal)
  }

  #checkpoint(name: string): void {
    if (name !== this.crashAt) return
    this.crashAt = null
    throw new Error('the process ended here')
  }

  get #chain(): LocalChain {
    return this.#devnet.chains.find(({ code }) => code === this.place.code) as LocalChain
  }

  /** Empties the database and creates a wallet with coins. */
  async open(): Promise<void> {
    await truncateTables(
      this.database,
      'workspaces',
      'ledger_entries',
      'signing_accounts',
      'network_scans',
      'blocks',
      'utxos',
    )
    const one = async (sql: string, values: unknown[]) =>
      ((await this.database.one<{ id: string }>(sql, values)) as { id: string }).id
    const workspaceId = await one(`insert into workspaces (name) values ('acme') returning id`, [])
    const index = 1
    const subAccountId = await one(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', $2)
        returning id`,
      [workspaceId, index],
    )
    const apiKey = randomUUID()
    this.nodes.enrol({
      api_key: apiKey,
      public_key_pem: PUBLIC_KEY,
      role: 'full',
      workspace: 'acme',
      sub_account: index,
    })
    this.caller = {
      apiKey,
      role: 'full',
      workspaceId,
      workspace: 'acme',
      subAccountId,
      subAccount: 'main',
      subAccountIndex: index,
    }
    const body = { asset: this.place.code }
    // On a busy machine the first start of the chain takes longer than the time limit of a request
    // to an endpoint.
    await this.#chain.start()
    const wallet = await this.#ask(createWallet, body)
    this.walletId = wallet['id'] as string
    this.source = (await this.#ask(createAddress, body))['address'] as string
    await this.fund(this.place.held)
  }

  async #ask(
    endpoint: AnyEndpoint,
    body: Record<string, unknown>,
    signed: unknown = null,
    params: unknown = undefined,
  ): Promise<Record<string, unknown>> {
    const answer = await endpoint.handler(
      {
        caller: this.caller,
        body,
        signed,
        query: undefined,
        params,
      },
      this.services,
    )
    return (answer.text === undefined ? answer.body : JSON.parse(answer.text)) as Record<
      string,
      unknown
    >
  }

  /**
   * Creates a wallet of another asset of the same network.
   * @returns its address
   */
  async openWallet(asset: string): Promise<string> {
    await this.#ask(createWallet, { asset })
    return this.newAddress(asset)
  }

  async newAddress(asset: string): Promise<string> {
    return (await this.#ask(createAddress, { asset }))['address'] as string
  }

  async fund(amount: string): Promise<void> {
    await this.control({ command: 'fund', asset: this.place.code, address: this.source, amount })
    await this.scan()
    await this.run()
  }

  /**
   * Advances the clock by the duration of an operation, so that rows of successive operations have
   * different times.
   */
  #tick(): void {
    this.#clock.advance(OPERATION_MS)
  }

  control(command: Record<string, unknown>): Promise<Record<string, unknown>> {
    this.#tick()
    return (this.services.devnet as NonNullable<Application['devnet']>)({
      network: this.place.code,
      ...command,
    })
  }

  /** Creates a transfer. The same sequence returns the same transfer. */
  async create(sequence: string, more: Record<string, unknown> = {}): Promise<string> {
    this.#tick()
    const { code, amount, to } = this.place
    const body = {
      asset: code,
      amount,
      destination_address: to,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
      sequence_id: sequence,
      ...more,
    }
    const signed = await this.#sign('/dac/v1/transaction', body)
    try {
      return (await this.#ask(createTransaction, body, signed))['id'] as string
    } catch (error) {
      // The response was lost with the process, so the caller repeats the request.
      if ((error as Error).message !== 'the process ended here') throw error
      return this.create(sequence, more)
    }
  }

  async cancel(id: string): Promise<void> {
    await this.#ask(
      cancelTransaction,
      {},
      await this.#sign(`/dac/v1/transaction/${id}/cancel`, {}),
      { id },
    )
  }

  async speedUp(id: string, body: Record<string, unknown>): Promise<void> {
    await this.#ask(speedUp, body, await this.#sign(`/dac/v1/transaction/${id}/speed-up`, body), {
      id,
    })
  }

  /** Returns the hash of a transfer that was sent and is not in a block yet. */
  async sentHash(id: string): Promise<string> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const { hash, state } = await this.read(id)
      if (hash !== null && (state === 'BROADCASTING' || state === 'CONFIRMING')) return hash
      if (!(await this.turn())) break
    }
    return assert.fail(`it was never sent: ${JSON.stringify(await this.pending())}`)
  }

  #sign(uri: string, body: Record<string, unknown>) {
    return signRequest({
      apiKey: this.caller.apiKey,
      privateKey: PRIVATE_KEY,
      method: 'POST',
      uri,
      body: JSON.stringify(body),
      now: Math.floor(this.#clock.now() / 1000),
    })
  }

  /** From now on the nodes refuse to sign payments of transfers, or are unavailable for them. */
  set fault(fault: 'refuse' | 'away' | undefined) {
    this.nodes.fault = ({ purpose }: Order) => (purpose.kind === 'pay' ? fault : undefined)
  }

  async #mine(): Promise<void> {
    await this.control({ command: 'mine', blocks: 1 })
    await this.scan()
  }

  async scan(): Promise<void> {
    while (await this.#scan());
  }

  /**
   * Runs all due work, as the workers do.
   * @returns false if no work was due
   */
  async step(): Promise<boolean> {
    this.#tick()
    const due = await claim(this.services, 16)
    await Promise.all(due.map((row) => runStep(this.services, row)))
    return due.length > 0
  }

  /**
   * Runs one round: runs due work; otherwise mines a block if a row waits for one; otherwise
   * advances the clock until the next row is due.
   * @returns false if all work has ended
   */
  async turn(): Promise<boolean> {
    while (await this.#fill()) await this.scan()
    if (await this.step()) return true
    const { waiting } = await this.#chain.info()
    const open = await this.database.one<{ burying: boolean; wait: number | null }>(
      `select coalesce(bool_or(state in ('CONFIRMING', 'BROADCASTING')), false) burying,
         extract(epoch from min(next_run_at) - $1::timestamptz) * 1000 wait
       from transactions where status = 'pending'`,
      [this.database.now()],
    )
    if ((waiting ?? 0) > 0 || open?.burying) {
      await this.#mine()
      if ((waiting ?? 0) > 0 || open?.wait === null) return true
    }
    if (open?.wait === null || open?.wait === undefined) return open?.burying ?? false
    const wait = Math.max(1, Math.ceil(Number(open.wait)))
    this.#clock.advance(wait)
    this.turnedMs += wait
    assert.ok(
      this.turnedMs <= WAITED_MS_MAX,
      `rows have waited ${this.turnedMs} ms: ${JSON.stringify(await this.pending())}`,
    )
    return true
  }

  /** Runs rounds until all work has ended. */
  async run(): Promise<void> {
    for (let round = 0; await this.turn(); round++) {
      if (round === ROUNDS_MAX)
        assert.fail(`it does not end: ${JSON.stringify(await this.pending())}`)
    }
  }

  /**
   * Runs rounds until a condition holds.
   * @throws AssertionError if all work ends before the condition holds, or after the maximum number
   *   of rounds
   */
  async turnUntil(what: string, holds: () => boolean): Promise<void> {
    for (let round = 0; !holds(); round++) {
      if (round === ROUNDS_MAX || !(await this.turn()))
        assert.fail(`never: ${what}; ${JSON.stringify(await this.pending())}`)
    }
  }

  /** Runs rounds until a transfer has reached a state. */
  async runTo(id: string, state: string): Promise<void> {
    for (let round = 0; (await this.read(id)).state !== state; round++) {
      if (!(await this.turn()) || round === ROUNDS_MAX)
        assert.fail(`${state} was never reached: ${JSON.stringify(await this.read(id))}`)
    }
  }

  pending(): Promise<unknown[]> {
    return this.database.query(
      `select kind, state, last_error, plan->>'reason' reason from transactions
        where status = 'pending'`,
    )
  }

  async read(id: string): Promise<TransactionRow> {
    return (await this.database.one<TransactionRow>(
      'select *, amount::text, fee::text from transactions where id = $1',
      [id],
    )) as TransactionRow
  }

  /** Returns the events of a transaction, in order. */
  events(id: string): Promise<{ type: string; sub_status: string; generation: number }[]> {
    return this.database.query(
      `select type, payload->>'sub_status' sub_status, (payload->>'generation')::integer generation
       from events where payload->>'id' = $1 order by created_at, id`,
      [id],
    )
  }

  /** Returns the wallet's available balance in the smallest unit. */
  async available(): Promise<bigint> {
    const row = await this.database.one<{ balance: string }>(
      `select coalesce(sum(balance), 0)::text balance from ledger_accounts where wallet_id = $1
        and asset = $2 and kind = 'available'`,
      [this.walletId, this.place.code],
    )
    return BigInt(row?.balance ?? '0')
  }

  /** Books an amount for the wallet, also below zero, as a reversed deposit does. */
  async adjust(amount: bigint): Promise<void> {
    const of = { workspace: this.caller.workspaceId, asset: this.place.code }
    await this.database.transaction((tx) =>
      post(
        tx,
        'deposit-reverted',
        randomUUID(),
        [
          { ...of, kind: 'chain', amount: -amount },
          { ...of, wallet: this.walletId, kind: 'available', amount },
        ],
        { overdraw: true },
      ),
    )
  }

  get amount(): bigint {
    return parseAmount(this.place.amount, this.asset.decimals)
  }

  /**
   * Returns the number of a transfer's transactions that the chain contains and has executed
   * successfully.
   */
  async onChain(id: string): Promise<number> {
    const rows = await this.database.query<{ hash: string }>(
      `select hash from chain_transactions where transaction_id = $1 and step is null
        and hash is not null`,
      [id],
    )
    let count = 0
    for (const { hash } of rows) {
      const status = await this.services.networks.client(this.place.code).status(hash)
      if (status.state === 'included' && status.succeeded) count++
    }
    return count
  }

  /** Asserts that ledger and chain agree, and that nothing is reserved or pending. */
  async check(): Promise<void> {
    assert.deepEqual(await this.pending(), [])
    const { differences, dust } = await audit(this.services)
    assert.deepEqual([differences, dust], [[], []])
    assert.deepEqual(
      await this.database.query(
        `select kind, balance::text from ledger_accounts where kind in ('reserved', 'tank_reserved',
          'float_reserved') and balance <> 0`,
      ),
      [],
    )
    assert.deepEqual(
      await this.database.query(
        `select state from chain_transactions where state in ('BUILT', 'SIGNED', 'INCLUDED')`,
      ),
      [],
    )
  }

  async close(): Promise<void> {
    await this.control({ command: 'fault', mode: 'heal' })
    this.nodes.close()
  }
}

let nextSeed = 1000
