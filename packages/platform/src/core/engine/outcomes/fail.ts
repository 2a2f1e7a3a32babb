import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../database/pool.ts'
import { emit } from '../../ledger/post.ts'
import { voidIntent, type Dead } from '../../signing/void.ts'
import { endOpen } from '../../signing/withdraw.ts'
import { recordEnd } from './record-end.ts'
import {
  adoptPublished,
  giveWay,
  isBuilt,
  noteEnded,
  openTransactions,
  type Open,
  type OpenServices,
} from './open-transactions.ts'
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

type VoidServices = Services & OpenServices

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
 * Selects the transactions that do not prevent a transfer from failing: expired
 * ones, completed staking steps, and the transfer's fuel, which went to a platform address and is
 * booked separately. Any other signed transaction may still move money.
 */
const HARMLESS = `select hash, transaction_id = $1 own from chain_transactions
  where workspace_id = $2 and (hash is not null or transaction_id = $1 and state = 'EXPIRED')
    and transaction_id = any(array(
    select $1::uuid union select id from transactions where workspace_id = $2 and parent_id = $1
      and source_type = 'GAS_TANK'
    union select fuel_id from fuel_parts where workspace_id = $2 and transaction_id = $1))
  and (transaction_id <> $1 or state in ('EXPIRED', 'VOID') or step is not null
    and state = 'CONFIRMED')`

async function deadOf(
  { database }: Services,
  row: TransactionRow,
  excluded: readonly Open[],
): Promise<Dead> {
  const rows = await database.query<{ hash: string | null; own: boolean }>(HARMLESS, [
    row.id,
    row.workspace_id,
  ])
  const hashesOf = (own: boolean) =>
    rows.flatMap((each) => (each.own === own && each.hash !== null ? [each.hash] : []))
  return {
    hashes: hashesOf(true),
    harmless: hashesOf(false),
    unsigned:
      rows.filter(({ hash }) => hash === null).length +
      excluded.filter(({ valid_until: end }) => end === null).length,
  }
}

/**
 * Milliseconds until the next check of a transfer that is to fail and may still be paid, and of one that
 * only people can end.
 */
const MAY_BE_PAID_RETRY_MS = 20_000
const RECONCILE_RETRY_MS = 60_000

/**
 * VOIDING → FAILED, once nothing of the transfer can be included any more, and two signer nodes have
 * stored the void.
 */
export async function voidAndFail(services: VoidServices, row: TransactionRow): Promise<void> {
  const open = await openTransactions(services, row)
  const ended = await endOpen(services, open)
  if (!ended) {
    if (await adoptPublished(services, row, open)) return
    return mayBePaid(services, row)
  }
  if (open.length > 0) await services.database.transaction((tx) => noteEnded(tx, row, ended))
  const outcome = await voidIntent(
    services,
    voidedBy(row),
    await deadOf(services, row, ended.excluded),
  )
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
      run_in_ms: RECONCILE_RETRY_MS,
    })
  }
  const { held, needed } = outcome
  if (held < needed)
    throw new Error(`only ${held} signer nodes have stored the void; ${needed} are required`)
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
 * Handles a transfer that is to fail while a signer node may have a signature of it. A cancelled one
 * continues where the chain lets its cancellation compete with it: the nodes sign the same transaction
 * again. Otherwise it waits until it expires; if it never does, until another transfer has used its nonce or
 * its coins, which are released for that.
 */
async function mayBePaid(services: VoidServices, row: TransactionRow): Promise<void> {
  const { database, networks, log } = services
  const isReplaceable = networks.get(row.network).replaceable !== null
  await database.transaction(async (tx) => {
    if (row.plan.cancel && isReplaceable && (await isBuilt(tx, row)))
      return advance(tx, row, {
        state: 'SIGNING',
        plan: { cancel: null, reason: null },
        last_error: null,
        run_in_ms: 0,
      })
    if (await giveWay(tx, row))
      log.warn(
        { transaction: row.id },
        'a transfer that is to fail may have been signed; its nonce or coins were released to exclude it',
      )
    return advance(tx, row, {
      state: 'VOIDING',
      waits: 'SIGNER_NODES',
      last_error:
        'a signer node may have signed it, so it fails once another transaction excludes it or it expires',
      run_in_ms: MAY_BE_PAID_RETRY_MS,
    })
  })
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
