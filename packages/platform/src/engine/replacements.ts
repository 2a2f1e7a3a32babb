import type { Network } from '@custody/chains'
import { z } from 'zod'
import type { Queryable } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import type { Caller } from '../http/endpoint.ts'
import { exact } from '../http/schemas.ts'
import type { SignedRequest } from '@custody/request-auth'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

export type ReplacementKind = 'SPEED_UP' | 'CANCEL' | 'AUTO'

/** A row of `replacements`: what is to take a waiting transaction's place. */
export interface Replacement {
  id: string; transaction_id: string; kind: ReplacementKind; state: 'PENDING' | 'FUELING' | 'DONE' | 'REFUSED'
  request: TransactionRow['request']; receipts: unknown[]; fee_rate: string | null; fee_level: string | null
  plan: Record<string, string | undefined>; reason: string | null; created_at: Date
}

export const replacementShape = z.object({
  kind: z.enum(['speed-up', 'cancel', 'automatic']), state: z.enum(['pending', 'done', 'refused']), fee_rate: z.number().nullable(), fee_level: z.string().nullable(), reason: z.string().nullable(), created_at: z.string(),
})
const KINDS = { SPEED_UP: 'speed-up', CANCEL: 'cancel', AUTO: 'automatic' } as const
const STATES = { PENDING: 'pending', FUELING: 'pending', DONE: 'done', REFUSED: 'refused' } as const

export function presentReplacement(row: Replacement) {
  return { kind: KINDS[row.kind], state: STATES[row.state], fee_rate: row.fee_rate === null ? null : exact(row.fee_rate), fee_level: row.fee_level, reason: row.reason, created_at: row.created_at.toISOString() }
}

export async function replacementsOf(database: Queryable, transactionId: string): Promise<Replacement[]> {
  return database.query<Replacement>('select * from replacements where transaction_id = $1 order by created_at, id', [transactionId])
}

export async function openReplacement(database: Queryable, transactionId: string): Promise<Replacement | undefined> {
  return database.one<Replacement>(`select * from replacements where transaction_id = $1 and state in ('PENDING', 'FUELING')`, [transactionId])
}

export async function refuse(tx: Queryable, replacement: Pick<Replacement, 'id'>, reason: string): Promise<void> {
  await tx.query(`update replacements set state = 'REFUSED', reason = $2, updated_at = $3 where id = $1`, [replacement.id, reason, tx.now()])
}

/** Why nothing can take the place of a signed transaction on a network; null where something can. */
export function whyFinal(network: Network): string | null {
  if (network.family === 'evm' || network.utxo?.replaceable) return null
  return `${network.name} has no way to replace a transaction that is signed`
}

/** States in which nothing has been signed for a transfer yet. */
export const UNSIGNED_STATES = new Set(['CREATED', 'SCREENING', 'AML_HELD', 'QUEUED', 'FUELING', 'SIGNING'])
/** States in which signed bytes wait for a block. */
export const WAITING_STATES = new Set(['SIGNED', 'BROADCASTING', 'CONFIRMING'])

/** A cancellation by another signed request of the owner than his cancellation; nothing where a replacement is under way. */
export async function openCancellation(tx: Queryable, id: string, transactionId: string, request: SignedRequest & { api_key: string }): Promise<void> {
  await writeReplacement(tx, { id, transactionId, kind: 'CANCEL', request, feeRate: null, feeLevel: null })
}

async function writeReplacement(tx: Queryable, o: { id: string; transactionId: string; kind: ReplacementKind; request: SignedRequest & { api_key: string }; feeRate: string | null; feeLevel: string | null }): Promise<boolean> {
  const written = await tx.query(
    `insert into replacements (id, transaction_id, kind, request, fee_rate, fee_level, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $7)
     on conflict do nothing returning id`,
    [o.id, o.transactionId, o.kind, JSON.stringify(o.request), o.feeRate, o.feeLevel, tx.now()])
  if (written.length === 0) return false
  // Before anything is signed a cancellation ends the transfer itself: every step looks at this first.
  await tx.query(
    `update transactions set plan = case when $2 then plan || jsonb_build_object('cancel', $3::text) else plan end, next_run_at = $4 where id = $1 and status = 'pending'`,
    [o.transactionId, o.kind === 'CANCEL', o.id, tx.now()])
  return true
}

/**
 * Notes what the caller asked for and lets a worker do it.
 * @throws ApiError `REPLACEMENT_PENDING` where another one is under way
 */
export async function requestReplacement(services: Services, caller: Caller, row: TransactionRow, o: { kind: ReplacementKind; signed: SignedRequest; feeRate: string | null; feeLevel: string | null }): Promise<string> {
  const id = services.environment.uuid()
  await services.database.transaction(async (tx) => {
    const { kind, feeRate, feeLevel } = o
    const written = await writeReplacement(tx, { id, transactionId: row.id, kind, request: { api_key: caller.apiKey, ...o.signed }, feeRate, feeLevel })
    if (!written) throw new ApiError('REPLACEMENT_PENDING', 'id: another replacement of this transaction is under way; look at it again in a few seconds', { field: 'id' })
  })
  return id
}
