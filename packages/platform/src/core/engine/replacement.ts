import type { Network } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import type { Queryable } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import type { TransactionRow } from './transaction.ts'

type Owned = Pick<TransactionRow, 'id' | 'workspace_id'>

export type ReplacementKind = 'SPEED_UP' | 'CANCEL' | 'AUTO'

/** A row of `replacements`: a speed-up, cancellation or automatic bump of a pending transaction. */
export interface Replacement {
  id: string
  workspace_id: string
  transaction_id: string
  kind: ReplacementKind
  state: 'PENDING' | 'FUELING' | 'DONE' | 'REFUSED'
  request: TransactionRow['request']
  receipts: unknown[]
  fee_rate: string | null
  fee_level: string | null
  plan: { fuel_id?: string | null; float_taken?: string; counted?: string; refused?: string }
  reason: string | null
  created_at: Date
}

export async function replacementsOf(database: Queryable, of: Owned): Promise<Replacement[]> {
  return database.query<Replacement>(
    `select * from replacements where workspace_id = $2 and transaction_id = $1 order by created_at,
      id`,
    [of.id, of.workspace_id],
  )
}

export async function openReplacement(
  database: Queryable,
  of: Owned,
): Promise<Replacement | undefined> {
  return database.one<Replacement>(
    `select * from replacements where workspace_id = $2 and transaction_id = $1
      and state in ('PENDING', 'FUELING')`,
    [of.id, of.workspace_id],
  )
}

export async function refuse(
  tx: Queryable,
  replacement: Pick<Replacement, 'id' | 'workspace_id'>,
  reason: string,
): Promise<void> {
  await tx.query(
    `update replacements set state = 'REFUSED', reason = $2, updated_at = $3 where workspace_id = $4
      and id = $1`,
    [replacement.id, reason, tx.now(), replacement.workspace_id],
  )
}

/**
 * Opens a cancellation that another signed request of the owner implies, such as the deletion of a
 * rule. Does nothing if a replacement is in progress.
 */
export async function openCancellation(
  tx: Queryable,
  id: string,
  of: Owned,
  request: SignedRequest & { api_key: string },
): Promise<void> {
  await writeReplacement(tx, { id, of, kind: 'CANCEL', request, feeRate: null, feeLevel: null })
}

interface NewReplacement {
  id: string
  of: Owned
  kind: ReplacementKind
  request: SignedRequest & { api_key: string }
  feeRate: string | null
  feeLevel: string | null
}

async function writeReplacement(tx: Queryable, o: NewReplacement): Promise<boolean> {
  const written = await tx.query(
    `insert into replacements (id, transaction_id, kind, request, fee_rate, fee_level, created_at,
      updated_at, workspace_id)
     values ($1, $2, $3, $4, $5, $6, $7, $7, $8) on conflict do nothing returning id`,
    [
      o.id,
      o.of.id,
      o.kind,
      JSON.stringify(o.request),
      o.feeRate,
      o.feeLevel,
      tx.now(),
      o.of.workspace_id,
    ],
  )
  if (written.length === 0) return false
  // Before anything is signed, a cancellation ends the transfer itself: every step checks
  // `plan.cancel` first.
  await tx.query(
    `update transactions set plan = case when $2 then plan || jsonb_build_object('cancel', $3::text)
      else plan end, next_run_at = $4
     where workspace_id = $5 and id = $1 and status = 'pending'`,
    [o.of.id, o.kind === 'CANCEL', o.id, tx.now(), o.of.workspace_id],
  )
  return true
}

/**
 * Stores a caller's requested replacement, within the caller's database transaction, for a worker
 * to process.
 * @throws ApiError `REPLACEMENT_PENDING` if another replacement is in progress
 */
export async function requestReplacement(tx: Queryable, request: NewReplacement): Promise<void> {
  if (await writeReplacement(tx, request)) return
  const message =
    'id: another replacement of this transaction is in progress; try again in a few seconds'
  throw new ApiError('REPLACEMENT_PENDING', message, { field: 'id' })
}

/** Explains why a signed transaction cannot be replaced on a chain that is not `replaceable`. */
export const whyFinal = ({ name }: Network): string =>
  `${name} does not support the replacement of a signed transaction`

/** States in which nothing has been signed for a transfer. */
export const UNSIGNED_STATES: ReadonlySet<string> = new Set([
  'CREATED',
  'SCREENING',
  'AML_HELD',
  'APPROVAL',
  'QUEUED',
  'FUELING',
  'SIGNING',
])
/** States in which a signed transaction waits for a block. */
export const WAITING_STATES: ReadonlySet<string> = new Set(['SIGNED', 'BROADCASTING', 'CONFIRMING'])
