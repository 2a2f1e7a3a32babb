import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../database/pool.ts'
import { emit } from '../../ledger/post.ts'
import { voidIntent } from '../../signing/void.ts'
import { recordEnd } from './record-end.ts'
import { advance, wakePolicy } from '../lease.ts'
import { wakeNextNonce } from '../nonce-order.ts'
import { presentTransaction } from '../present.ts'
import type { Environment } from '../../environment.ts'
import type { Registry } from '@custody/chains'
import type { SignerNodes } from '../../signing/nodes.ts'
import type { Metrics } from '../../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from '../interfaces/kind.ts'
import { ASKED_FOR, planned, type State, type TransactionRow } from '../transaction.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  signers: SignerNodes
  metrics: Metrics
  log: Logger
  kinds: Kinds
}

const RETURN_RETRY_MS = 30_000

/**
 * Starts the failure of a transaction that was never signed. A withdrawal is voided at the signer
 * nodes before it is reported as `failed`, so that a hostile platform cannot reuse the request
 * after the caller has paid in another way.
 */
export async function startFailing(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  reason: string,
): Promise<void> {
  // The return of delegated energy never fails permanently: it is retried until the stake is back.
  if (services.kinds[row.kind].retriesFailure) {
    return advance(tx, row, {
      state: 'QUEUED',
      waits: 'INTERNAL',
      last_error: reason,
      run_in_ms: RETURN_RETRY_MS,
    })
  }
  if (ASKED_FOR.has(row.kind) && row.source_type !== 'GAS_TANK') {
    return advance(tx, row, { state: 'VOIDING', plan: { reason }, last_error: null, run_in_ms: 0 })
  }
  await finish(services, tx, row, reason)
}

const CANCELLED = 'it was cancelled before it was signed; the amount was released'

/** Ends a transfer that the caller cancelled before anything was signed for it. */
export const failCancelled = (services: Services, row: TransactionRow): Promise<void> =>
  services.database.transaction((tx) => startFailing(services, tx, row, CANCELLED))

/**
 * Returns the data by which the signer nodes identify a transfer: the caller's request, its
 * position among a rule's forwards, or (if it was adopted) its id.
 */
function voidedBy(row: TransactionRow): Parameters<typeof voidIntent>[1] {
  if (row.plan.rule_id !== undefined) return { forward: { rule: row.plan.rule_id, id: row.id } }
  if (row.request === null) return { transaction_id: row.id }
  const { api_key: _, ...request } = row.request
  return { request }
}

/**
 * Selects the hashes of signed transactions that do not prevent a transfer from failing: expired
 * ones, completed staking steps, and the transfer's fuel, which went to a platform address and is
 * booked separately. Any other signed transaction may still move money.
 */
const HARMLESS = `select hash from chain_transactions where workspace_id = $2 and hash is not null
    and transaction_id = any(array(
    select $1::uuid union select id from transactions where workspace_id = $2 and parent_id = $1
      and source_type = 'GAS_TANK'
    union select fuel_id from fuel_parts where workspace_id = $2 and transaction_id = $1))
  and (transaction_id <> $1 or state in ('EXPIRED', 'VOID') or step is not null
    and state = 'CONFIRMED')`

/** VOIDING → FAILED, once two signer nodes have stored the void. */
export async function voidAndFail(services: Services, row: TransactionRow): Promise<void> {
  const harmless = await services.database.query<{ hash: string }>(HARMLESS, [
    row.id,
    row.workspace_id,
  ])
  const outcome = await voidIntent(
    services,
    voidedBy(row),
    harmless.map(({ hash }) => hash),
  )
  if (outcome.signed.length > 0 && row.plan.cancel) {
    // The signer nodes completed the signature just before the void. The transfer continues, and
    // its cancellation competes with it on the chain.
    const built = await services.database.one(
      `select 1 from chain_transactions where workspace_id = $2 and transaction_id = $1
        and state = 'BUILT'`,
      [row.id, row.workspace_id],
    )
    if (built) {
      return advance(services.database, row, {
        state: 'SIGNING',
        plan: { cancel: null, reason: null },
        last_error: null,
        run_in_ms: 0,
      })
    }
  }
  if (outcome.signed.length > 0) {
    // The signer nodes have signed for this request but this database does not have the signature,
    // probably because an old backup was restored. Money may have moved.
    services.log.error(
      { transaction: row.id, hashes: outcome.signed },
      'the signer nodes have a signature that this database does not contain; reconcile manually',
    )
    return advance(services.database, row, {
      state: 'VOIDING',
      waits: 'INTERNAL',
      last_error: `the signer nodes have already signed it: ${outcome.signed.join(', ')}`,
      run_in_ms: 60_000,
    })
  }
  if (!outcome.enough)
    throw new Error(
      `only ${outcome.held} signer nodes have stored the void; ${outcome.needed} are required`,
    )
  const voided = { ...row, voids: outcome.voids }
  await services.database.transaction(async (tx) => {
    await finish(services, tx, voided, row.plan.reason ?? 'failed')
    // What it would have charged to the windows of the policy has room for others.
    await wakePolicy(tx, row.workspace_id)
    await tx.query('update transactions set voids = $2 where workspace_id = $3 and id = $1', [
      row.id,
      JSON.stringify(outcome.voids),
      row.workspace_id,
    ])
  })
  services.environment.checkpoint('transaction.failed')
}

/**
 * Marks a transfer as failed: releases the coins of its unsigned and expired attempts and, through
 * its kind, every reservation.
 */
async function finish(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  reason: string,
): Promise<void> {
  const kind = services.kinds[row.kind]
  await kind.failing?.(tx, row, reason)
  await tx.query(
    `update utxos set spent_by = null
     where workspace_id = $2 and spent_by in (
       select id from chain_transactions where workspace_id = $2 and transaction_id = $1
         and state in ('BUILT', 'EXPIRED'))`,
    [row.id, row.workspace_id],
  )
  const inputs = await tx.query<{ account: string | null; nonce: string | null }>(
    `update chain_transactions set state = 'VOID' where workspace_id = $2 and transaction_id = $1
      and state in ('BUILT', 'EXPIRED')
     returning account, nonce::text`,
    [row.id, row.workspace_id],
  )
  for (const place of inputs) if (place.nonce !== null) await wakeNextNonce(tx, row, place)
  const ending = (await kind.release?.(tx, row, reason)) ?? {}
  if (row.plan.cancel) {
    await tx.query(
      `update replacements set state = 'DONE', updated_at = $2 where workspace_id = $3 and id = $1`,
      [row.plan.cancel, tx.now(), row.workspace_id],
    )
  }
  await tx.query(
    `update replacements set state = 'REFUSED', reason = 'the transfer has failed', updated_at = $2
     where workspace_id = $3 and transaction_id = $1 and state in ('PENDING', 'FUELING')`,
    [row.id, tx.now(), row.workspace_id],
  )
  const state: State = row.plan.cancel ? 'CANCELLED' : (ending.state ?? 'FAILED')
  // A transfer that never reached a chain has no fee.
  const end = {
    state,
    status: 'failed' as const,
    failure_reason: ending.reason ?? reason,
    fee: ending.fee ?? 0n,
    plan: ending.plan ?? {},
  }
  await advance(tx, row, end)
  recordEnd(services, row, 'failed')
  await kind.failed?.(tx, row, ending)
  if (!ASKED_FOR.has(row.kind)) return
  const shown = presentTransaction(
    { ...row, ...end, fee: end.fee.toString(), plan: planned(row, end.plan) },
    services.registry,
  )
  await emit(tx, row.workspace_id, row.sub_account_id, 'transaction.failed', stringifyJson(shown))
}
