import { ChainError, type Registry } from '@custody/chains'
import { assured, isFail, type Chain, type Fail, type Task, type Wait } from './chain.ts'
import { commitBuilt } from './commit.ts'
import { startFailing } from './outcomes/fail.ts'
import { advance } from './lease.ts'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import type { Tanks } from './interfaces/tanks.ts'
import { planned, type TransactionRow } from './transaction.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  metrics: Metrics
  log: Logger
  kinds: Kinds
  tanks: Tanks
}

/** Pause before a transfer of a wallet below zero is tried again, in milliseconds. */
const BELOW_ZERO_POLL_MS = 10_000

/**
 * QUEUED → SIGNING, or → FUELING if the workspace's gas tank pays: fixes the inputs or nonce and
 * the unsigned bytes in one commit.
 */
export async function build(services: Services, row: TransactionRow): Promise<void> {
  const kind = services.kinds[row.kind]
  if (await kind.heldBack?.(row)) return
  if (kind.spendsBalance?.(row) && (await isBelowZero(services.database, row)))
    return advance(services.database, row, {
      waits: 'BELOW_ZERO',
      last_error: 'the balance of the wallet is below zero',
      run_in_ms: BELOW_ZERO_POLL_MS,
    })
  const chain = services.networks.get(row.network)
  // A transaction sent by the gas tank itself was planned when its row was inserted.
  const isPlanned = chain.fuelled !== null && row.source_type === 'GAS_TANK'
  const task = await taskOf(services, row)
  if (task.sweeps && task.amount === 0n) return refuse(services, row, 'no amount is left to sweep')
  const refusal = await refusalOf(services, chain, task)
  if (refusal) return refuse(services, row, refusal)
  const { fuelled } = chain
  if (!fuelled || isPlanned) return prepareAndCommit(services, task)
  const most = await services.tanks.maxGasPrice(row)
  const priced = await assured(
    chain,
    async () => kind.price?.(chain, task) ?? fuelled.price(task, most),
    isFail,
  )
  if (priced.kind !== 'priced') return halt(services, row, priced)
  // The cost of a sweep paid by the gas tank includes the fuel transaction. A sweep that pays for
  // itself only needs to move more than its own fee.
  const cost = priced.own ? priced.worst : priced.worst + priced.fuel.cost
  if (await kind.postpones?.(row, chain, { amount: task.amount, cost, own: priced.own })) return
  if (!priced.own) return services.tanks.start(row, chain, priced)
  await prepareAndCommit(services, { ...task, row: { ...row, plan: planned(row, priced.plan) } })
}

/** FUELING → SIGNING, once the fuel has arrived. */
export async function buildFuelled(services: Services, row: TransactionRow): Promise<void> {
  const task = await taskOf(services, row)
  // A staking operation consists of several calls. The chain may now refuse a call that it allowed
  // before the first one.
  const refusal = task.action
    ? await refusalOf(services, services.networks.get(row.network), task)
    : null
  if (refusal) return refuse(services, row, refusal)
  await prepareAndCommit(services, task)
}

async function prepareAndCommit(services: Services, task: Task): Promise<void> {
  const { row } = task
  const chain = services.networks.get(row.network)
  const prepared = await assured(
    chain,
    () => chain.prepare(task),
    (answer) => (answer.kind === 'prepared' ? answer.needsAbsence === true : isFail(answer)),
  )
  if (prepared.kind !== 'prepared') return halt(services, row, prepared)
  if (
    prepared.cost &&
    (await services.kinds[row.kind].postpones?.(row, chain, {
      amount: task.amount,
      cost: prepared.cost.worst,
      own: prepared.cost.own,
    }))
  ) {
    return
  }
  await commitBuilt(services, row, prepared)
}

/** Returns why the chain, by an endpoint whose state is current, refuses a transaction; null: it does not. */
const refusalOf = (services: Services, chain: Chain, task: Task): Promise<string | null> =>
  assured(
    chain,
    async () => (await services.kinds[task.row.kind].refusal?.(chain, task)) ?? null,
    (refusal) => refusal !== null,
  )

/** Whether a reorganisation has left the wallet's available balance below zero. */
async function isBelowZero(
  database: Database,
  { workspace_id: workspace, wallet_id: wallet, asset }: TransactionRow,
): Promise<boolean> {
  const account = await database.one(
    `select 1 from ledger_accounts where workspace_id = $1 and wallet_id = $2 and asset = $3
       and kind = 'available' and balance < 0`,
    [workspace, wallet, asset],
  )
  return account !== undefined
}

async function taskOf(services: Services, row: TransactionRow): Promise<Task> {
  const asset = services.registry.asset(row.asset)
  if (!asset) throw new ChainError('ASSET', `asset ${row.asset} is not available`)
  const kind = services.kinds[row.kind]
  const sweeps = kind.sweeps ?? false
  return {
    row,
    asset,
    sweeps,
    amount: sweeps ? await sweepable(services, row) : BigInt(row.amount),
    action: kind.action?.(row) ?? null,
  }
}

/** Returns the unswept balance of a deposit address according to the ledger. */
async function sweepable(services: Services, row: TransactionRow): Promise<bigint> {
  const match = await services.database.one<{ balance: string }>(
    `select balance::text from ledger_accounts
     where workspace_id = $4 and wallet_id = $1 and asset = $2 and kind = 'unswept'
       and address = $3`,
    [row.wallet_id, row.asset, row.source_id, row.workspace_id],
  )
  const balance = BigInt(match?.balance ?? '0')
  return balance > 0n ? balance : 0n
}

async function halt(services: Services, row: TransactionRow, answer: Wait | Fail): Promise<void> {
  if (answer.kind === 'fail') return refuse(services, row, answer.reason)
  await advance(services.database, row, {
    waits: answer.code,
    last_error: answer.reason,
    run_in_ms: answer.inMs,
  })
}

const refuse = (services: Services, row: TransactionRow, reason: string) =>
  services.database.transaction((tx) => startFailing(services, tx, row, reason))
