import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, before } from 'node:test'
import {
  loadRegistry,
  type ChainBlock,
  type ChainTransfer,
  type Senders,
  type FamilyName,
  type Network,
} from '@custody/chains'
import { sealToken } from '../src/custody/aml/policy.ts'
import type { Provider } from '../src/custody/aml/providers/provider.ts'
import { type Database, type DatabaseOptions } from '../src/core/database/pool.ts'
import { scanLoop } from '../src/custody/deposits/scanner.ts'
import { systemEnvironment } from '../src/core/environment.ts'
import { createMetrics } from '../src/core/metrics.ts'
import { fixtureServices } from './chains/chain-fixture.ts'
import { Secrets } from '../src/core/secrets.ts'
import type { Application } from '../src/server/app/application.ts'
import type { TransactionRow } from '../src/core/engine/transaction.ts'
import { IS_HALTED } from '../src/core/engine/lease.ts'
import { runStep } from '../src/core/engine/run.ts'
import { withOperator } from './accepting-operator.ts'
import { truncateTables } from './truncate-tables.ts'
import { clockPool, followClock, type ManualClock } from './manual-clock.ts'
import {
  adminOf,
  createTestDatabase,
  openTestDatabase,
  type ServerMode,
  type TestDatabase,
} from './test-database.ts'

/**
 * Fixture with the real scanner, screening and crediting on a real PostgreSQL. Only the chain and
 * the providers are scripted.
 */
export const registry = loadRegistry('local')
/**
 * Number of blocks after which the scripted chain reports a block as final. Some reorganisations in
 * the tests are deeper.
 */
export const DEPTH = 2
/** One network, with its assets, for each family that the fixture supports. */
export const FAMILIES: Partial<
  Record<FamilyName, { code: string; assets: [string, ...string[]] }>
> = {
  utxo: { code: 'BTC', assets: ['BTC'] },
  evm: { code: 'ETH', assets: ['ETH', 'USDT_ETH', 'USDC_ETH'] },
  tron: { code: 'TRX', assets: ['TRX', 'USDT_TRX'] },
  xrp: { code: 'XRP', assets: ['XRP'] },
  stellar: { code: 'XLM', assets: ['XLM'] },
  cardano: { code: 'ADA', assets: ['ADA'] },
  solana: { code: 'SOL', assets: ['SOL', 'USDC_SOL'] },
}

export interface UseDatabaseOptions extends DatabaseOptions {
  migrated?: boolean
  server?: ServerMode
  /** Clock for `now()` and for the columns that PostgreSQL fills in by default. */
  clock?: ManualClock
}

/** Creates a database for the tests of one file. */
export function useDatabase({ migrated, server, clock, ...options }: UseDatabaseOptions = {}): {
  /** Returns the database as the platform's processes use it. */
  get(): Database
  /** Returns the superuser's connections to it. */
  admin(): Database
  /** Returns the URLs of the database. */
  urls(): TestDatabase
  started: Promise<void>
} {
  let created: TestDatabase
  let database: Database
  const start = async () => {
    created = await createTestDatabase({ migrated, server })
    const timed = clock ? { now: clock.now, pool: clockPool(clock) } : {}
    // Without tables, the role of the platform's processes has no rights.
    const url = migrated === false ? created.adminUrl : created.url
    database = openTestDatabase({ ...created, url }, { ...options, ...timed })
    if (clock) await followClock(adminOf(database))
  }
  // The start is shared, because hooks of one file do not wait for each other.
  const started = start()
  before(() => started)
  after(async () => {
    await database.close()
    await created.remove()
  })
  return { get: () => database, admin: () => adminOf(database), urls: () => created, started }
}

/** Transfers of one transaction on the scripted chain. */
export type Outcome = (Partial<ChainTransfer> &
  Pick<ChainTransfer, 'position' | 'asset' | 'address' | 'amount'>)[]
export interface ScriptedTransaction {
  txid: string
  outcome: Outcome
}

const KNOWN: Senders = { addresses: ['somebody'], complete: true }
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

/** A chain whose last blocks can be removed. The height of a block is its index. */
export class ScriptedChain {
  blocks: ChainBlock[] = [
    { height: 0, hash: hashOf('genesis'), parent: '', txids: [], transfers: [] },
  ]
  /** Senders of each transaction that the node returns on request, for families based on coins. */
  readonly paidBy = new Map<string, Senders | Error>()
  #made = 0

  mine(...transactions: ScriptedTransaction[]): ChainBlock {
    const parent = this.blocks.at(-1) as ChainBlock
    const block: ChainBlock = {
      height: parent.height + 1,
      hash: hashOf(`${parent.hash} ${++this.#made}`),
      parent: parent.hash,
      txids: transactions.map(({ txid }) => txid),
      transfers: transactions.flatMap(({ txid, outcome }) =>
        outcome.map((each) => ({
          sender: this instanceof ScriptedCoins ? null : 'somebody',
          senders: this instanceof ScriptedCoins ? null : KNOWN,
          coinbase: false,
          ...each,
          txid,
        })),
      ),
    }
    this.blocks.push(block)
    return block
  }

  /** Removes the last `count` blocks. The first block always stays. */
  drop(count: number): void {
    this.blocks.splice(Math.max(1, this.blocks.length - count))
  }

  /** Mines blocks until all earlier blocks are final. */
  bury(): void {
    for (let count = 0; count < DEPTH; count++) this.mine()
  }

  has(txid: string): boolean {
    return this.blocks.some(({ txids }) => txids.includes(txid))
  }

  async probe(): Promise<void> {}

  async tip() {
    const { height, hash } = this.blocks.at(-1) as ChainBlock
    return { height, hash, finalHeight: Math.max(0, height - DEPTH + 1) }
  }

  /** Returns a copy, so that callers cannot modify the chain. */
  async block(height: number): Promise<ChainBlock | null> {
    const block = this.blocks[height]
    return block ? structuredClone(block) : null
  }

  async status(txid: string) {
    const block = this.blocks.find(({ txids }) => txids.includes(txid))
    return block
      ? {
          state: 'included' as const,
          height: block.height,
          blockHash: block.hash,
          succeeded: true,
          fee: 0n,
        }
      : { state: 'absent' as const }
  }
}

/**
 * Scripted chain of the families based on coins. Their blocks do not contain the senders, so the
 * node is queried.
 */
class ScriptedCoins extends ScriptedChain {
  async senders(txid: string): Promise<Senders> {
    const result = this.paidBy.get(txid) ?? KNOWN
    if (result instanceof Error) throw result
    return result
  }
}

export interface Tenant {
  workspace: string
  subAccount: string
  omnibus: string
  deposit: string
  wallets: Record<string, string>
}

/** One network of one installation with its scripted chain. */
export class DepositFixture {
  now = Date.UTC(2026, 0, 1)
  readonly network: Network
  readonly assets: [string, ...string[]]
  readonly chain: ScriptedChain
  readonly database: Database
  readonly services: Application
  readonly risks = new Map<string, 'SEVERE'>()
  /** Addresses for which the provider was queried. */
  readonly requests: string[] = []
  readonly sanctioned = new Set<string>()
  readonly logged: { level: string; fields: Record<string, unknown>; message: string }[] = []
  #scan: () => Promise<boolean>
  /** Whether the operator accepts reorganisations of final blocks at once. */
  accepts = true

  constructor(database: Database, family: FamilyName) {
    const { code, assets } = FAMILIES[family] ?? assert.fail(`${family} is not staged`)
    this.assets = assets
    this.network = registry.network(code) as Network
    this.database = database
    this.chain =
      family === 'utxo' || family === 'cardano' ? new ScriptedCoins() : new ScriptedChain()
    const provider: Provider = {
      screen: async (_token, { address }) => {
        this.requests.push(address)
        return this.risks.get(address) ?? null
      },
      verifyToken: async () => true,
    }
    const environment = { ...systemEnvironment(), now: () => this.now }
    const logAt = (level: string) => (fields: Record<string, unknown>, message: string) =>
      void this.logged.push({ level, fields, message })
    this.services = fixtureServices(
      {
        environment,
        database,
        log: { info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
        settings: { pollMs: 1000 },
        metrics: createMetrics(),
        aml: {
          providers: { CHAINALYSIS: provider },
          sanctions: { has: (_: Network, address: string) => this.sanctioned.has(address) },
          secrets: new Secrets(new Uint8Array(32), environment),
        },
      },
      { [code]: this.chain },
    )
    const loop = scanLoop(
      this.services,
      this.services.networks.get(code),
      async () => new Set([code]),
    )
    const pass = () => loop.run(new AbortController().signal)
    const accepting = withOperator(database, pass)
    this.#scan = () => (this.accepts ? accepting() : pass())
  }

  /** Empties the database. The scan starts at the chain's first block. */
  async open(): Promise<void> {
    await truncateTables(this.database, 'workspaces', 'blocks', 'network_scans', 'ledger_entries')
    const [first] = this.chain.blocks as [ChainBlock]
    await this.database.query('insert into network_scans (network, height) values ($1, 0)', [
      this.network.code,
    ])
    await this.database.query(
      'insert into blocks (network, height, hash, parent) values ($1, 0, $2, $3)',
      [this.network.code, first.hash, first.parent],
    )
  }

  async tenant(name: string): Promise<Tenant> {
    const code = this.network.code
    const [omnibus, deposit] = [`${name}-omnibus`, `${name}-deposit`]
    const workspace = (await this.database.one<{ id: string }>(
      'insert into workspaces (name) values ($1) returning id',
      [name],
    ))!.id
    const subAccount = (await this.database.one<{ id: string }>(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)
        returning id`,
      [workspace],
    ))!.id
    const wallets: Record<string, string> = {}
    for (const asset of this.assets) {
      wallets[asset] = (await this.database.one<{ id: string }>(
        `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
          returning id`,
        [workspace, subAccount, asset, code],
      ))!.id
    }
    for (const [index, address] of [omnibus, deposit].entries()) {
      await this.database.query(
        `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
          kind) values ($1, $2, $3, $4, $5, $6)`,
        [code, address, workspace, subAccount, index, index === 0 ? 'omnibus' : 'deposit'],
      )
      await this.database.query(
        `insert into wallet_addresses (wallet_id, network, address, address_tag,
          workspace_id) select $1, $2, $3, $4, workspace_id from wallets where id = $1`,
        [wallets[this.assets[0]], code, address, index === 0 ? '1' : null],
      )
    }
    return { workspace, subAccount, omnibus, deposit, wallets }
  }

  /** Enables the screening of deposits. */
  async screenDeposits(tenant: Tenant): Promise<void> {
    await this.database.query(
      `insert into aml_settings (sub_account_id, provider, sealed_token, risk_levels,
        screen_deposits, screen_withdrawals, updated_at, workspace_id)
       values ($1, 'CHAINALYSIS', $2, '{SEVERE}', true, false, $3,
         (select workspace_id from sub_accounts where id = $1))`,
      [tenant.subAccount, sealToken(this.services, tenant.subAccount, 'key'), new Date(this.now)],
    )
  }

  async scan(): Promise<void> {
    while (await this.#scan());
  }

  /** Runs the steps of all due deposits until none of them changes. */
  async step(): Promise<void> {
    for (let round = 0; round < 3; round++) {
      const rows = await this.database.query<TransactionRow>(
        `update transactions t set lease_token = gen_random_uuid(), attempts = attempts + 1
         where kind = 'DEPOSIT' and state in ('SCREENING', 'FROZEN') and status = 'pending'
           returning *, ${IS_HALTED} "isHalted"`,
      )
      for (const row of rows) await runStep(this.services, row)
    }
  }

  /** Scans to the tip and processes the deposits. */
  async settle(): Promise<void> {
    await this.scan()
    await this.scan()
    await this.step()
  }

  async deposits(): Promise<(TransactionRow & { block_height: string | null })[]> {
    return this.database.query(
      `select t.*, t.amount::text, d.block_height::text from transactions t
        join deposits d on d.transaction_id = t.id
       order by t.created_at, t.id`,
    )
  }

  /** Returns a tenant's ledger balances by asset, without zero balances. */
  async books(tenant: Tenant): Promise<Record<string, string>> {
    const rows = await this.database.query<{ asset: string; sum: string }>(
      `select asset, sum(balance)::text sum from ledger_accounts where workspace_id = $1
        and kind <> 'chain' group by asset
       having sum(balance) <> 0 order by asset`,
      [tenant.workspace],
    )
    return Object.fromEntries(rows.map(({ asset, sum }) => [asset, sum]))
  }
}

export const newId = () => randomUUID()
