import type { Queryable, Database } from '../database/pool.ts'
import { reasonFor, type WaitCode } from './waiting.ts'
import { REORGANISED } from './settlement.ts'
import { ASKED_FOR, type Plan, type State, type TransactionRow } from './transaction.ts'

interface Services {
  database: Database
}

/**
 * Duration of a worker's lease on a row, in milliseconds. A worker renews the lease while it works.
 * If the worker dies, another takes the row after this time.
 */
export const LEASE_MS = 20_000
/** Interval at which leases are renewed, in milliseconds. */
export const RENEW_MS = 5000

/**
 * Thrown when another worker has taken the row because this one was too slow; nothing more may be
 * written.
 */
export class LeaseLost extends Error {
  constructor(id: string) {
    super(`the lease of ${id} was lost`)
    this.name = 'LeaseLost'
  }
}

/** SQL condition on `transactions t`: an endpoint of the network contradicts a final block. */
export const IS_HALTED = `exists (select 1 from network_scans s where s.network = t.network
  and s.contradiction is not null)`

/** Leases up to `limit` due transactions for this worker. */
export async function claim(services: Services, limit: number): Promise<TransactionRow[]> {
  return services.database.query<TransactionRow>(
    // The selection is materialized, so that the limited subquery runs only once, whichever join
    // plan PostgreSQL chooses.
    `with mine as materialized (
       select workspace_id, id from transactions where next_run_at <= $3
         and (lease_until is null or lease_until < $3)
       order by next_run_at limit $1 for update skip locked
     ) update transactions t set lease_until = $3::timestamptz + $2 * interval '1 millisecond',
       lease_token = gen_random_uuid(),
      attempts = t.attempts + 1
     from mine where t.workspace_id = mine.workspace_id and t.id = mine.id
     returning t.*, ${IS_HALTED} "isHalted"`,
    [limit, LEASE_MS, services.database.now()],
  )
}

/** Extends the leases with these tokens, including rows that were leased together with them. */
export async function renew({ database }: Services, tokens: readonly string[]): Promise<void> {
  await database.query(
    `update transactions set lease_until = $2::timestamptz + $3 * interval '1 millisecond'
      where lease_token = any($1::uuid[])`,
    [tokens, database.now(), LEASE_MS],
  )
}

/** Changes that a step writes; an absent field stays unchanged. */
export interface Change {
  state?: State
  status?: 'pending' | 'confirmed' | 'failed'
  failure_reason?: string | null
  last_error?: string | null
  /**
   * Code of the reason why the transaction waits until its next step; absent or null: there is no
   * reason that its caller needs to know.
   */
  waits?: WaitCode | null
  /** Code for which the transaction waits that this one waits for (`GAS_TANK`). */
  cause?: WaitCode | null
  hash?: string
  confirmations?: number
  fee?: bigint
  amount?: bigint
  plan?: Plan
  confirmed_at?: Date
  /**
   * Milliseconds until the next step; null: another event wakes it, with a slow poll as fallback.
   */
  run_in_ms?: number | null
}

const COLUMNS = [
  'state',
  'status',
  'failure_reason',
  'last_error',
  'hash',
  'confirmations',
  'fee',
  'amount',
  'confirmed_at',
] as const
const FALLBACK_POLL_MS = 15_000

/** Returns the assignment of `waiting`, and adds its values. */
function setWaiting(
  tx: Queryable,
  { waits: code = null, cause = null }: Change,
  values: unknown[],
): string {
  if (code === null) return 'waiting = null'
  const waiting = { code, reason: reasonFor(code, cause), since: tx.now().toISOString() }
  values.push(code, cause, JSON.stringify({ ...waiting, ...(cause === null ? {} : { cause }) }))
  const [codeAt, causeAt, waitingAt] = [2, 1, 0].map((before) => `$${values.length - before}`)
  // `since` stays unchanged as long as the codes do.
  return `waiting = case when waiting->>'code' = ${codeAt}
    and waiting->>'cause' is not distinct from ${causeAt} then waiting else ${waitingAt}::jsonb end`
}

/**
 * Writes the result of a step and releases the lease.
 * @throws LeaseLost if another worker has taken the row
 */
export async function advance(tx: Queryable, row: TransactionRow, change: Change): Promise<void> {
  const values: unknown[] = [
    row.id,
    row.lease_token,
    change.state !== undefined && change.state !== row.state,
    tx.now(),
  ]
  const sets = [
    'updated_at = case when $3 then $4::timestamptz else updated_at end',
    'lease_until = null',
    'lease_token = null',
  ]
  for (const column of COLUMNS) {
    const value = change[column]
    if (value === undefined) continue
    values.push(typeof value === 'bigint' ? value.toString() : value)
    sets.push(`${column} = $${values.length}`)
  }
  sets.push(setWaiting(tx, change, values))
  if (change.plan) {
    values.push(JSON.stringify(change.plan))
    sets.push(`plan = plan || $${values.length}::jsonb`)
  }
  if (change.status !== undefined && change.status !== 'pending') sets.push('next_run_at = null')
  else {
    values.push(row.plan.cancel ?? null, change.run_in_ms ?? FALLBACK_POLL_MS)
    // A cancellation that arrived during the step must not wait as long as the step would.
    sets.push(`next_run_at = $4::timestamptz + case
      when plan->>'cancel' is distinct from $${values.length - 1} then 0::float8
      else $${values.length} end * interval '1 millisecond'`)
  }
  if (change.state !== undefined && change.state !== row.state) sets.push('attempts = 0')
  // The same statement writes the event of a change. Terminal states have their own events, which
  // contain the whole transaction.
  const isReported =
    ASKED_FOR.has(row.kind) &&
    change.state !== undefined &&
    change.state !== row.state &&
    (change.status ?? 'pending') === 'pending'
  values.push(isReported, row.workspace_id)
  const written = await tx.query<{ id: string }>(
    `with written as (
       update transactions set ${sets.join(', ')} where workspace_id = $${values.length} and id = $1
         and lease_token = $2
       returning id, workspace_id, sub_account_id, state, hash, confirmations,
         coalesce(plan->>'generation', '0')::integer generation
     ), noted as (
       insert into events (workspace_id, sub_account_id, type, payload)
       select workspace_id, sub_account_id, 'transaction.updated', jsonb_build_object(
         'id', id, 'status', 'pending',
         'sub_status', case when generation > 0 then '${REORGANISED}' else state end, 'hash', hash,
         'confirmations', confirmations, 'generation', generation
       )
       from written where $${values.length - 1}
     ) select id from written`,
    values,
  )
  if (written.length !== 1) throw new LeaseLost(row.id)
  if (isReported)
    tx.emit({
      type: 'transaction.updated',
      workspace: row.workspace_id,
      payload: JSON.stringify({ id: row.id }),
    })
}

/**
 * Makes a transaction due now because the event it was waiting for has happened. A leased row is
 * left to its worker.
 */
export async function wakeOne(tx: Queryable, workspace: string, id: string | null): Promise<void> {
  await tx.query(
    `update transactions set next_run_at = $2 where workspace_id = $3 and id = $1
      and lease_token is null`,
    [id, tx.now(), workspace],
  )
}

/**
 * Makes the oldest queued transaction of a wallet due now, because new coins are available for it.
 */
export async function wakeBuilding(
  tx: Queryable,
  workspace: string,
  walletId: string,
): Promise<void> {
  await tx.query(
    `update transactions set next_run_at = $2 where lease_token is null and workspace_id = $3
       and id = (
       select id from transactions where workspace_id = $3 and wallet_id = $1 and state = 'QUEUED'
         and status = 'pending'
         and lease_token is null
       order by created_at, id limit 1)`,
    [walletId, tx.now(), workspace],
  )
}

/** Interval in milliseconds at which the transfers of one workspace become due that are woken together. */
const WAKE_INTERVAL_MS = 100

/**
 * Makes the transfers of a workspace due that wait for its policy, because of an event after which
 * the nodes may judge otherwise. They become due one after the other, so that their number does not
 * delay other workspaces. Leased and locked rows are left to their workers.
 */
export async function wakePolicy(tx: Queryable, workspace: string): Promise<void> {
  await tx.query(
    `with waiting as (
       select id, row_number() over (order by created_at, id) place from (
         select id, created_at from transactions
         where workspace_id = $1 and status = 'pending' and lease_token is null
           and waiting->>'code' in ('POLICY', 'APPROVAL') and next_run_at > $2
         for update skip locked) found
     ) update transactions t
       set next_run_at = least(t.next_run_at, $2::timestamptz + place * $3 * interval '1 millisecond')
     from waiting where t.workspace_id = $1 and t.id = waiting.id`,
    [workspace, tx.now(), WAKE_INTERVAL_MS],
  )
}

/** SQL condition on `transactions`: the transaction was sent and waits for new blocks. */
export const AWAITS_CHAIN = `status = 'pending' and state in ('CONFIRMING', 'BROADCASTING') and lease_token is null and next_run_at is not null`

/**
 * Makes the sent transactions of a network due now, after a new block. Transactions that wait for
 * fuel are not included: they are woken when the fuel is booked, because otherwise all transactions
 * waiting for one tank would be checked again with every block.
 */
export async function wake(tx: Queryable, network: string): Promise<void> {
  await tx.query(
    `update transactions set next_run_at = $2 where network = $1 and ${AWAITS_CHAIN}`,
    [network, tx.now()],
  )
}
