import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, before, beforeEach } from 'node:test'
import { inspect } from 'node:util'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  decode,
  familyOf,
  pathOf,
  publicKeysBelow,
  type Asset,
  type Fetch,
  type Network,
} from '@custody/chains'
import { removeHome, startDevnet, tempHome, type Running } from '../../../devnet/testing/support.ts'
import type { Built, Chain, ChainContext, Prepared, Task } from '../../src/core/engine/chain.ts'
import type { TransactionRow } from '../../src/core/engine/transaction.ts'
import { systemEnvironment } from '../../src/core/environment.ts'
import { connectSolana } from '../../src/core/families/solana/index.ts'
import { connectStellar, connectXrp } from '../../src/core/families/tagged/index.ts'
import { registry, useDatabase } from '../deposits-support.ts'
import { truncateTables } from '../truncate-tables.ts'

/**
 * Fixture with the account-based chains, connected as the platform connects them, on the local
 * chains and a real database.
 */
const SECRET = createHash('sha256').update('tests of accounts').digest()
const CONNECT = { XRP: connectXrp, XLM: connectStellar, SOL: connectSolana }
export type Code = keyof typeof CONNECT
export const TAGGED: Code[] = ['XRP', 'XLM']
export const AWAY: Fetch = async () => {
  throw new Error('the chain is away')
}
const database = useDatabase()
const home = tempHome()
let devnet: Running

before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

/** Workspace and sub-account of the current test, with wallets on one network. */
export let place: { workspace: string; subAccount: string }
beforeEach(async () => {
  await database.started
  await truncateTables(database.get(), 'workspaces', 'signing_accounts')
  const one = async (sql: string, values: unknown[]) =>
    (await database.get().one<{ id: string }>(sql, values))?.id as string
  const workspace = await one(`insert into workspaces (name) values ('acme') returning id`, [])
  place = {
    workspace,
    subAccount: await one(
      `insert into sub_accounts (workspace_id, name, path_index) values ($1, 'main', 1)
        returning id`,
      [workspace],
    ),
  }
})

export const assetOf = (name: string) => registry.asset(name) as Asset
const keyOf = (curve: Network['curve']) => {
  const publicKey =
    curve === 'secp256k1' ? secp256k1.getPublicKey(SECRET, true) : ed25519.getPublicKey(SECRET)
  return publicKeysBelow({ curve, publicKey, chainCode: SECRET })
}
export const addressAt = (network: Network, index: number) =>
  familyOf(network).address(network, keyOf(network.curve)(pathOf(network, 1, index)))

/**
 * Index of the last used address. Each test takes unused addresses, because the local chains keep
 * their state between tests.
 */
let used = 100
export const unusedOn = (network: Network) => addressAt(network, ++used)

export function connect(
  code: Code,
  o: { fetch?: Fetch; now?: () => number; sleep?: () => Promise<void> } = {},
): Chain {
  const system = systemEnvironment()
  const environment = { ...system, now: o.now ?? system.now, sleep: o.sleep ?? system.sleep }
  const context: ChainContext = {
    registry,
    environment,
    database: database.get(),
    keys: { get: async (_workspace, curve) => ({ at: keyOf(curve) }) },
    addresses: {
      omnibus: async () => assert.fail('not asked'),
      change: async () => assert.fail('not asked'),
    },
  }
  const network = registry.network(code) as Network
  const url = `${devnet.url}/${code.toLowerCase()}`
  return CONNECT[code](context, network, {
    client: (make) => make({ url }, o.fetch ?? ((target, init) => fetch(target, init))),
  })
}

export async function walletOf(asset: Asset): Promise<string> {
  const { id } = (await database.get().one<{ id: string }>(
    `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
        returning id`,
    [place.workspace, place.subAccount, asset.asset_name, asset.network],
  )) as { id: string }
  return id
}

/** Returns the platform's own address at an index. */
export async function own(network: Network, index: number): Promise<string> {
  const address = addressAt(network, index)
  await database.get().query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
      values ($1, $2, $3, $4, $5, $6)
     on conflict do nothing`,
    [
      network.code,
      address,
      place.workspace,
      place.subAccount,
      index,
      index === 0 ? 'omnibus' : 'deposit',
    ],
  )
  return address
}

export const fund = (asset: string, address: string, amount: string) =>
  devnet.control({ command: 'fund', asset, address, amount, tag: null })

interface TaskOptions {
  kind?: 'WITHDRAWAL' | 'SWEEP'
  wallet: string
  from: string
  to: string
  amount: bigint
  attempts?: number
  feeRate?: string
}
export async function taskOf(
  asset: Asset,
  { kind = 'WITHDRAWAL', ...o }: TaskOptions,
): Promise<Task> {
  const row = (await database.get().one<TransactionRow>(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
       amount, fee_asset, source_type, source_id,
       destination_type, destination_id, state, status, attempts, fee_rate)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'INTERNAL', $10, 'EXTERNAL', $11, 'QUEUED',
       'pending', $12, $13) returning *`,
    [
      randomUUID(),
      kind,
      place.workspace,
      place.subAccount,
      o.wallet,
      asset.asset_name,
      asset.network,
      o.amount.toString(),
      asset.fee_asset,
      o.from,
      o.to,
      o.attempts ?? 1,
      o.feeRate ?? null,
    ],
  )) as TransactionRow
  return { row, asset, sweeps: kind === 'SWEEP', amount: o.amount, action: null }
}

export async function prepared(chain: Chain, task: Task): Promise<Prepared> {
  const answer = await chain.prepare(task)
  assert.equal(answer.kind, 'prepared', inspect(answer))
  return answer as Prepared
}

export const build = async (chain: Chain, task: Task, unswept = 0n) =>
  (await prepared(chain, task)).build(database.get(), unswept)

export async function built(chain: Chain, task: Task, unswept = 0n): Promise<Built> {
  const answer = await build(chain, task, unswept)
  assert.equal(answer.kind, 'built', inspect(answer))
  return answer as Built
}

export const opened = ({ network }: Chain, { unsigned }: Built) =>
  decode(registry, unsigned, keyOf(network.curve))

/** Inserts the chain transaction in the same form as the engine. */
export async function write(
  { row }: Task,
  chosen: Built,
  state: string,
  hash: string | null = null,
): Promise<void> {
  const { unsigned, account, nonce, validUntil } = chosen
  await database.get().query(
    `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned,
      fee_max, valid_until, hash, workspace_id)
     values ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, (select workspace_id from transactions
       where id = $2))`,
    [
      randomUUID(),
      row.id,
      row.network,
      state,
      account,
      nonce?.toString() ?? null,
      JSON.stringify(unsigned),
      validUntil,
      hash,
    ],
  )
}

export const setState = ({ row }: Task, state: string) =>
  database.get().query('update transactions set state = $2 where id = $1', [row.id, state])
