import type { Network } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import type { Queryable } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import type { TransactionRow } from './transaction.ts'

export type ReplacementKind = 'SPEED_UP' | 'CANCEL' | 'AUTO'

/** A row of `replacements`: a speed-up or cancellation that is to take a waiting transaction's place. */
export interface Replacement {
  id: string; transaction_id: string; kind: ReplacementKind; state: 'PENDING' | 'FUELING' | 'DONE' | 'REFUSED'
  request: TransactionRow['request']; receipts: unknown[]; fee_rate: string | null; fee_level: string | null
  plan: { fuel_id?: string | null; float_taken?: string; counted?: string }; reason: string | null; created_at: Date
}

export async function replacementsOf(database: Queryable, transactionId: string): Promise<Replacement[]> {
  return database.query<Replacement>('select * from replacements where transaction_id = $1 order by created_at, id', [transactionId])
}

export async function openReplacement(database: Queryable, transactionId: string): Promise<Replacement | undefined> {
  return database.one<Replacement>(
    `select * from replacements where transaction_id = $1 and state in ('PENDING', 'FUELING')`, [transactionId]
  )
}

export async function refuse(tx: Queryable, replacement: Pick<Replacement, 'id'>, reason: string): Promise<void> {
  await tx.query(`update replacements set state = 'REFUSED', reason = $2, updated_at = $3 where id = $1`, [
    replacement.id, reason, tx.now(),
  ])
}

/** A cancellation by another signed request of the owner than his cancellation; nothing where a replacement is under way. */
export async function openCancellation(
  tx: Queryable, id: string, transactionId: string, request: SignedRequest & { api_key: string },
): Promise<void> {
  await writeReplacement(tx, { id, transactionId, kind: 'CANCEL', request, feeRate: null, feeLevel: null })
}

interface Asked {
  id: string; transactionId: string; kind: ReplacementKind; request: SignedRequest & { api_key: string }
  feeRate: string | null; feeLevel: string | null
}

async function writeReplacement(tx: Queryable, o: Asked): Promise<boolean> {
  const written = await tx.query(
    `insert into replacements (id, transaction_id, kind, request, fee_rate, fee_level, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $7) on conflict do nothing returning id`,
    [o.id, o.transactionId, o.kind, JSON.stringify(o.request), o.feeRate, o.feeLevel, tx.now()])
  if (written.length === 0) return false
  // Before anything is signed a cancellation ends the transfer itself: every step looks at this first.
  await tx.query(
    `update transactions set plan = case when $2 then plan || jsonb_build_object('cancel', $3::text) else plan end, next_run_at = $4
     where id = $1 and status = 'pending'`,
    [o.transactionId, o.kind === 'CANCEL', o.id, tx.now()])
  return true
}

/**
 * Notes what the caller asked for, within a database transaction of its own, and lets a worker do it.
 * @throws ApiError `REPLACEMENT_PENDING` where another one is under way
 */
export async function requestReplacement(tx: Queryable, asked: Asked): Promise<void> {
  if (await writeReplacement(tx, asked)) return
  const message = 'id: another replacement of this transaction is under way; look at it again in a few seconds'
  throw new ApiError('REPLACEMENT_PENDING', message, { field: 'id' })
}

/** Why nothing takes the place of a signed transaction, where a chain is not `replaceable`. */
export const whyFinal = ({ name }: Network): string => `${name} has no way to replace a transaction that is signed`

/** States in which nothing has been signed for a transfer yet. */
export const UNSIGNED_STATES: ReadonlySet<string> = new Set(['CREATED', 'SCREENING', 'AML_HELD', 'QUEUED', 'FUELING', 'SIGNING'])
/** States in which signed bytes wait for a block. */
export const WAITING_STATES: ReadonlySet<string> = new Set(['SIGNED', 'BROADCASTING', 'CONFIRMING'])
