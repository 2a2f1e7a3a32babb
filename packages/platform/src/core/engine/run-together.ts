import {
  assemble,
  type SignedTransaction,
  type UnsignedTransaction,
  type Registry,
} from '@custody/chains'
import { notePart } from '@custody/tracing'
import type { Queryable, Database } from '../database/pool.ts'
import { orderPolicy, workspaceOf } from '../signing/approvals.ts'
import { ownPathsOf } from '../signing/own-paths.ts'
import { RUN_MAX, signRun, type SignOrder } from '../signing/sign.ts'
import type { Withdrawn } from '../signing/withdraw.ts'
import { LEASE_MS, LeaseLost } from './lease.ts'
import { lockAccount } from './nonce-order.ts'
import { askPurpose } from './purpose.ts'
import type { Environment } from '../environment.ts'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import { maySubmit } from './submission.ts'
import type { TransactionRow } from './transaction.ts'

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
}

/**
 * A built transaction that is signed in the same session as the previous one, leased by the same
 * worker.
 */
export interface Follower {
  row: TransactionRow
  built: { id: string; unsigned: UnsignedTransaction }
  /** Whether the transaction was never submitted to a signer node before. */
  isNew: boolean
}

/**
 * Leases the payments with consecutive nonces that wait behind a transaction of the account, so
 * that all are signed in one session. Once this returns they count as submitted: a node may have
 * signed any of them, even if this process stops.
 * @param head the chain transaction before them, which is already submitted
 */
export async function takeFollowers(
  services: Pick<Services, 'database' | 'kinds'>,
  row: TransactionRow,
  head: { id: string; account: string },
): Promise<readonly Follower[]> {
  if (!services.kinds[row.kind].isSignedTogether?.(row)) return []
  const taken = await services.database.transaction(async (tx) => {
    await lockAccount(tx, row.network, head.account)
    const waiting = await tx.query<{
      transaction_id: string
      id: string
      unsigned: UnsignedTransaction
      is_new: boolean
      ahead: string
    }>(
      `select c.transaction_id, c.id, c.unsigned, c.shown_at is null is_new,
        (c.nonce - h.nonce)::text ahead
       from chain_transactions h
       join chain_transactions c on c.workspace_id = h.workspace_id and c.network = h.network
         and c.account = h.account
         and c.nonce > h.nonce and c.nonce < h.nonce + $2
       join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
       where h.workspace_id = $4 and h.id = $1 and c.state = 'BUILT' and c.replaces is null
         and t.kind = $3 and t.state = 'SIGNING' and t.lease_token is null and not t.plan ? 'cancel'
       order by c.nonce for update of t skip locked`,
      [head.id, RUN_MAX, row.kind, row.workspace_id],
    )
    // If a transaction between two nonces is missing here, it is waiting for something, and those
    // behind it must not be signed before it.
    const run = waiting.filter(({ ahead }, at) => Number(ahead) === at + 1)
    if (run.length === 0) return []
    const rows = await tx.query<TransactionRow>(
      `update transactions set lease_until = $2::timestamptz + $3 * interval '1 millisecond',
        lease_token = $4, attempts = attempts + 1
       where workspace_id = $5 and id = any($1) returning *`,
      [
        run.map((each) => each.transaction_id),
        tx.now(),
        LEASE_MS,
        row.lease_token,
        row.workspace_id,
      ],
    )
    return run.map(({ transaction_id: of, id, unsigned, is_new: isNew }) => ({
      isNew,
      built: { id, unsigned },
      row: rows.find((each) => each.id === of) as TransactionRow,
    }))
  })
  const ready = await keepReady(services, taken)
  const shown = ready.length > 0 ? await show(services, row, head.account, ready) : []
  await letGo(services.database, ready.slice(shown.length))
  return shown
}

/**
 * Marks followers as submitted; from then on they keep their nonces. Uses the account's lock, like
 * the code that reassigns the nonce of a transaction that was given up.
 * @returns the followers before the first one that may not be submitted
 */
async function show(
  services: Pick<Services, 'database' | 'kinds'>,
  row: TransactionRow,
  account: string,
  all: readonly Follower[],
): Promise<readonly Follower[]> {
  return services.database.transaction(async (tx) => {
    let allowed = 0
    for (const { isNew, row: follower } of all) {
      if (isNew && !(await maySubmit(services, tx, follower))) break
      allowed++
    }
    const ready = all.slice(0, allowed)
    await lockAccount(tx, row.network, account)
    const shown = await tx.query(
      `update chain_transactions c set shown_at = coalesce(c.shown_at, $3)
        from unnest($1::uuid[], $2::text[]) as r(id, bytes)
       where c.workspace_id = $4 and c.id = r.id and c.state = 'BUILT'
         and c.unsigned->>'bytes' = r.bytes returning 1`,
      [
        ready.map(({ built }) => built.id),
        ready.map(({ built }) => built.unsigned.bytes),
        tx.now(),
        row.workspace_id,
      ],
    )
    if (shown.length !== ready.length) throw new LeaseLost(row.id)
    return ready
  })
}

/**
 * Returns the transactions of a run that precede the first one that must not be signed now;
 * releases that one and those after it.
 */
async function keepReady(
  services: Pick<Services, 'database' | 'kinds'>,
  taken: readonly Follower[],
): Promise<Follower[]> {
  const ready: Follower[] = []
  for (const follower of taken) {
    const kind = services.kinds[follower.row.kind]
    if (!kind.isSignedTogether?.(follower.row) || (await kind.heldBack?.(follower.row))) break
    ready.push(follower)
  }
  await letGo(services.database, taken.slice(ready.length))
  return ready
}

/**
 * Releases the leases of unsigned followers; signing the previous transaction wakes the next one.
 * The lease of a follower that its kind held back was already released.
 * @param outcome of the run; without it, the followers stay submitted. Otherwise they may change
 *   their nonces again: all of them if no signature of them exists, and those that were submitted
 *   for the first time if nothing was signed by the orders of this call
 */
export async function letGo(
  database: Queryable,
  followers: readonly Follower[],
  { isUntouched, isUnsigned }: Withdrawn = { isUntouched: false, isUnsigned: false },
): Promise<void> {
  if (followers.length === 0) return
  const unsubmitted = followers.filter(({ isNew }) => isUnsigned || (isUntouched && isNew))
  if (unsubmitted.length > 0) {
    await database.query(
      `update chain_transactions c set shown_at = null from transactions t
       where c.workspace_id = $3 and c.id = any($1) and c.state = 'BUILT'
         and t.workspace_id = $3 and t.id = c.transaction_id and t.lease_token = $2`,
      [
        unsubmitted.map(({ built }) => built.id),
        followers[0]?.row.lease_token,
        followers[0]?.row.workspace_id,
      ],
    )
  }
  await database.query(
    `update transactions set lease_until = null, lease_token = null,
      next_run_at = $3::timestamptz + interval '15 seconds'
     where workspace_id = $4 and id = any($1) and lease_token = $2 and state = 'SIGNING'`,
    [
      followers.map(({ row }) => row.id),
      followers[0]?.row.lease_token,
      database.now(),
      followers[0]?.row.workspace_id,
    ],
  )
}

/** A transaction of a run, including the first one. */
export type Member = Pick<Follower, 'row' | 'built'>

/** Result of signing a run. */
export type Together =
  | { kind: 'signed'; nodes: [number, number]; signed: SignedTransaction[] }
  | ({ kind: 'unavailable'; message: string; code?: string | undefined } & Withdrawn)
  /**
   * The transaction at index `at` is refused, temporarily or permanently; null: it is not known
   * which transaction is refused.
   */
  | { kind: 'refused'; at: number | null; isUntouched: boolean }

/**
 * Requests signatures for payments of one account in one session, then assembles and verifies each
 * transaction locally as well.
 */
export async function signTogether(
  services: Services,
  run: readonly Member[],
  account: string,
): Promise<Together> {
  const [first] = run as [Member]
  const { network } = services.networks.get(first.row.network)
  const { database } = services
  const { name: workspace, approves } = await workspaceOf(database, first.row.workspace_id)
  const ids = run.map(({ row }) => row.id)
  const paths = await ownPathsOf(services, first.row.workspace_id, ids)
  const orders: Omit<SignOrder, 'workspace'>[] = []
  for (const { row, built } of run) {
    const policy = await orderPolicy(database, row, { approves, path: paths.get(row.id) })
    orders.push({ purpose: await askPurpose(services, row), unsigned: built.unsigned, policy })
  }
  const startMs = services.environment.now()
  const { at: key } = await services.keys.get(first.row.workspace_id, network.curve)
  const outcome = await signRun(services, workspace, orders, account, (unsigned, signatures) =>
    assemble(services.registry, unsigned, signatures, key),
  )
  // The trace of the first transaction contains the session; the others refer to it.
  const reported = { together_with: first.row.id, payments: run.length, outcome: outcome.kind }
  for (const { row } of run.slice(1))
    notePart(row.id, 'signing', reported, startMs, services.environment.now())
  if (outcome.kind !== 'signed') {
    const { isUntouched, isUnsigned } = outcome
    const at = outcome.kind === 'refused' ? outcome.body['at'] : outcome.at
    const place = typeof at === 'number' && at >= 0 && at < run.length ? at : null
    // Only one payment is refused for now, for example because the budget of its sub-account is
    // used up. The payments before it must not wait.
    const isOfOne = outcome.kind === 'refused' || (place !== null && place > 0)
    return isOfOne
      ? { kind: 'refused', isUntouched, at: place }
      : {
          kind: 'unavailable',
          isUntouched,
          isUnsigned,
          message: outcome.message,
          code: outcome.code,
        }
  }
  return outcome
}
