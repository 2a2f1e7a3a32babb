import { createHash, randomUUID } from 'node:crypto'
import {
  decode,
  evm,
  familyOf,
  loadRegistry,
  OMNIBUS_INDEX,
  pathOf,
  signing,
  TANK_SUB_ACCOUNT,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import { assemble, type SignatureBytes } from '@custody/chains'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import type { Database } from '../../src/core/database/pool.ts'
import { systemEnvironment } from '../../src/core/environment.ts'
import { post } from '../../src/core/ledger/post.ts'
import { createMetrics } from '../../src/core/metrics.ts'
import { DEFAULT_TIERS, readTiers } from '../../src/core/settings/tiers.ts'
import { reconcile, type ReconcileReport } from '../../src/server/recovery/reconcile.ts'
import { fixtureServices } from '../chains/chain-fixture.ts'
import { truncateTables } from '../truncate-tables.ts'
import type { Application } from '../../src/server/app/application.ts'
import { NodeUnavailable } from '../../src/core/signing/nodes.ts'
import { runStep } from '../../src/core/engine/run.ts'
import type { TransactionRow } from '../../src/core/engine/transaction.ts'

/**
 * Fixture with nodes that return their records, and an Ethereum chain that contains the recorded
 * transactions. The database is real and lacks some of them.
 */
const registry = loadRegistry('local')
const ETH = registry.network('ETH') as Network
const NATIVE = registry.asset('ETH') as Asset
export const STRANGER = '0x00000000000000000000000000000000000000AA'
const PRICE = 1_000_000_000n
export const FEE = 21_000n * PRICE
export const START = 10n ** 18n

const secretAt = (path: readonly number[]) =>
  createHash('sha256')
    .update(`recovery ${path.join('/')}`)
    .digest()
const publicKeyAt = (path: readonly number[]) => secp256k1.getPublicKey(secretAt(path))
export const addressAt = (subAccount: number, index: number) =>
  familyOf(ETH).address(ETH, publicKeyAt(pathOf(ETH, subAccount, index)))

type Entry = { kind: string; body: Record<string, unknown>; at: number }

export class RecoveryFixture {
  readonly database: Database
  readonly workspace = `w-${randomUUID()}`
  readonly apiKey = randomUUID()
  readonly records: Entry[][] = [[], [], []]
  readonly down = new Set<number>()
  readonly mined = new Map<string, { height: number; succeeded: boolean }>()
  readonly balances = new Map<string, bigint>()
  readonly sent: string[] = []
  readonly nonces = new Map<string, number>()
  height = 100
  crashAt = -1
  checkpoints = 0
  services!: Application
  workspaceId = ''
  walletId = ''

  constructor(database: Database) {
    this.database = database
  }

  async open(): Promise<void> {
    const client = {
      tip: async () => ({
        height: this.height,
        hash: `b${this.height}`,
        finalHeight: this.height - 5,
      }),
      block: async (height: number) => ({
        height,
        hash: `b${height}`,
        parent: `b${height - 1}`,
        txids: [],
        transfers: [],
      }),
      probe: async () => undefined,
      status: async (hash: string) => {
        const result = this.mined.get(hash)
        return result
          ? { state: 'included', blockHash: `b${result.height}`, fee: FEE, ...result }
          : { state: 'absent' }
      },
      broadcast: async (raw: string) => {
        this.sent.push(raw)
        return { kind: 'accepted' }
      },
      balance: async (address: string, asset: Asset) =>
        asset.type === 'native' ? (this.balances.get(address) ?? 0n) : 0n,
      balances: async (addresses: readonly string[], asset: Asset) =>
        addresses.map((each) => (asset.type === 'native' ? (this.balances.get(each) ?? 0n) : 0n)),
    }
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
    this.services = fixtureServices(
      {
        database: this.database,
        log: silent,
        callers: { forget: () => undefined },
        devnet: null,
        environment: {
          ...systemEnvironment(),
          sleep: async () => undefined,
          checkpoint: () => {
            if (this.checkpoints++ === this.crashAt) throw new Error('the process ended here')
          },
        },
        settings: {
          network: 'local',
          role: 'all',
          pollMs: 10,
          prepaidTiers: readTiers(DEFAULT_TIERS),
          feeBumpAfterMs: 0,
          auditEveryMs: 0,
        },
        keys: { get: async () => ({ at: publicKeyAt }) },
        metrics: createMetrics(),
        signers: {
          peers: [1, 2, 3].map((node) => ({ node })),
          call: async (node: number, _method: string, _path: string, body: { from: number }) =>
            this.history(node, body.from),
        },
      },
      { ETH: client },
    )
    // All fixtures use the same key, so rows of an earlier fixture would interfere.
    await truncateTables(
      this.database,
      'workspaces',
      'ledger_entries',
      'signing_accounts',
      'network_scans',
      'blocks',
      'signer_marks',
      'unadopted_steps',
    )
    await this.database.query(
      `insert into network_scans (network, height, tip_height, final_height)
         values ('ETH', 100, 100, 95)
         on conflict (network) do update set height = 100, rescan_from = null`,
    )
    // Blocks below the lowest stored one are identified by their height.
    await this.database.query(
      `insert into blocks (network, height, hash, parent) values ('ETH', 1000000, 'stored', 'b')`,
    )
    const one = async (sql: string, values: unknown[]) =>
      (await this.database.one<{ id: string }>(sql, values))?.id as string
    this.workspaceId = await one('insert into workspaces (name) values ($1) returning id', [
      this.workspace,
    ])
    const sub = await one(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)
        returning id`,
      [this.workspaceId],
    )
    this.walletId = await one(
      `insert into wallets (workspace_id, sub_account_id, asset, network)
        values ($1, $2, 'ETH', 'ETH') returning id`,
      [this.workspaceId, sub],
    )
    for (const [index, kind, owner] of [
      [OMNIBUS_INDEX, 'omnibus', sub],
      [1, 'deposit', sub],
    ] as const) {
      await this.database.query(
        `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index,
          kind) values ($1, $2, $3, $4, $5, $6)`,
        ['ETH', addressAt(1, index), this.workspaceId, owner, index, kind],
      )
    }
    const tank = addressAt(TANK_SUB_ACCOUNT, OMNIBUS_INDEX)
    await this.database.query(
      `insert into chain_addresses (network, address, workspace_id, path_index, kind)
        values ('ETH', $1, $2, 0, 'tank')`,
      [tank, this.workspaceId],
    )
    await this.database.query(
      `insert into gas_tanks (workspace_id, network, address, threshold) values ($1, 'ETH', $2, 0)`,
      [this.workspaceId, tank],
    )
    const scope = { workspace: this.workspaceId, asset: 'ETH' }
    await this.database.transaction((tx) =>
      post(tx, 'deposit', randomUUID(), [
        { ...scope, kind: 'chain', amount: -3n * START },
        { ...scope, wallet: this.walletId, kind: 'available', amount: START },
        {
          ...scope,
          wallet: this.walletId,
          kind: 'unswept',
          address: addressAt(1, 1),
          amount: START,
        },
        { ...scope, kind: 'tank', amount: START },
      ]),
    )
    for (const address of [addressAt(1, OMNIBUS_INDEX), addressAt(1, 1), tank])
      this.balances.set(address, START)
  }

  history(node: number, from: number): unknown {
    if (this.down.has(node)) throw new NodeUnavailable(node, 'cannot be reached')
    const record = this.records[node - 1] as Entry[]
    const entries = record
      .map((entry, at) => ({ ...entry, height: at + 1 }))
      .slice(from - 1, from + 4)
    const next = from + entries.length
    const hash = (height: number) =>
      height > record.length
        ? null
        : createHash('sha256')
            .update(JSON.stringify([this.workspace, record.slice(0, height)]))
            .digest('hex')
    return {
      node,
      generation: 0,
      height: record.length,
      before: hash(from - 1),
      hash: hash(next - 1),
      next,
      entries,
    }
  }

  /** Returns a transaction signed by two of the three nodes, in the form that the chain accepts. */
  sign(
    purpose: string,
    o: {
      from: [sub: number, index: number]
      to: string
      amount: bigint
      step: unknown[]
      intent?: unknown[]
      id?: string
      nonce?: number
      price?: bigint
    },
  ): { unsigned: UnsignedTransaction; hash: string; raw: string; signatures: SignatureBytes[] } {
    const path = pathOf(ETH, o.from[0], o.from[1])
    const nonce = o.nonce ?? this.nonces.get(path.join()) ?? 0
    this.nonces.set(path.join(), nonce + 1)
    const price = o.price ?? PRICE
    const unsigned = evm.buildTransfer(ETH, {
      asset: NATIVE,
      to: o.to,
      amount: o.amount,
      nonce: BigInt(nonce),
      gas: 21_000n,
      fee: { maxFeePerGas: price, maxPriorityFeePerGas: price / 10n, legacy: false },
      path: [...path],
    })
    decode(registry, unsigned, publicKeyAt)
    const signatures = signing(registry, unsigned, publicKeyAt).map(
      ({ message }): SignatureBytes => {
        const signature = secp256k1.sign(message, secretAt(path), {
          prehash: false,
          format: 'recovered',
        })
        return { signature: signature.subarray(1), recoveryId: signature[0] as number }
      },
    )
    return { unsigned, signatures, ...assemble(registry, unsigned, signatures, publicKeyAt) }
  }

  /**
   * Adds a transaction to the records of two nodes; `change` contains the fields that differ at one
   * of them.
   */
  record(
    pair: readonly number[],
    purpose: string,
    made: ReturnType<RecoveryFixture['sign']>,
    o: { step: unknown[]; intent?: unknown[]; id?: string },
    change: Record<string, unknown> = {},
  ): void {
    pair.forEach((node, at) => {
      const record = this.records[node - 1] as Entry[]
      const body = {
        purpose,
        workspace: this.workspace,
        step: JSON.stringify(o.step),
        intent: o.intent ? JSON.stringify(o.intent) : null,
        transaction_id: o.id ?? null,
        unsigned: {
          network: made.unsigned.network,
          bytes: made.unsigned.bytes,
          inputs: made.unsigned.inputs.map(({ path }) => ({ path })),
        },
        ...(at === 0 ? change : {}),
      }
      record.push({ kind: 'step', at: Date.now(), body })
      record.push({
        kind: 'signed',
        at: Date.now(),
        body: {
          step_height: record.length,
          signatures: made.signatures.map((each) => ({
            signature: Buffer.from(each.signature).toString('hex'),
            recovery_id: each.recoveryId,
          })),
        },
      })
    })
  }

  mine(made: { hash: string }, from: string, to: string, amount: bigint, deep = true): void {
    this.mined.set(made.hash, { height: deep ? 90 : 99, succeeded: true })
    const add = (address: string, change: bigint) =>
      this.balances.set(address, (this.balances.get(address) ?? 0n) + change)
    add(from, -amount - FEE)
    add(to, amount)
  }

  async reconcile(): Promise<ReconcileReport> {
    return reconcile(this.services, { dryRun: false, scanFrom: {}, gap: 2, waitMs: 0 })
  }

  /** Runs the regular steps, as the workers would. */
  async work(): Promise<void> {
    for (let round = 0; round < 6; round++) {
      const rows = await this.database.query<TransactionRow>(
        `update transactions set lease_token = gen_random_uuid(), attempts = attempts + 1
           where workspace_id = $1
           and status = 'pending' and state in ('CONFIRMING', 'BROADCASTING') returning *`,
        [this.workspaceId],
      )
      for (const row of rows) await runStep(this.services, row)
    }
  }

  /**
   * Returns all transactions, except a queued sweep of the amount that an earlier sweep left at its
   * address.
   */
  async transactions(): Promise<TransactionRow[]> {
    return this.database.query<TransactionRow>(
      `select * from transactions where workspace_id = $1
        and not (kind = 'SWEEP' and state = 'QUEUED') order by id`,
      [this.workspaceId],
    )
  }

  /** Returns all data that a second run must not change. */
  async books(): Promise<unknown> {
    return this.database.query(
      `select a.kind, a.address, a.balance::text, (select count(*)::int from ledger_postings p
         where p.account_id = a.id) postings
         from ledger_accounts a where a.workspace_id = $1 order by 1, 2`,
      [this.workspaceId],
    )
  }
}
