import { isConnectionError, type Database, type Queryable } from '../database/pool.ts'
import { ApiError, type ErrorCode } from '../errors.ts'
import type { Reply } from './endpoint.ts'

/** An idempotency key of a sub-account, with the request that it identifies. */
export interface IdempotencyKey {
  scope: 'orders' | 'exchange_transfers' | 'conversions' | 'quotes'
  subAccountId: string
  /** Undefined: the request has no idempotency key. */
  name: string | undefined
  payloadHash: string
  /**
   * Time at which the request arrived. An error that was returned for this key after that time is
   * returned to this request too.
   */
  askedAt: number
}

/**
 * To be called first in the database transaction that makes the requested object.
 * @throws Error if the key has a response by then
 */
export type Admit = (tx: Queryable) => Promise<void>

interface Refusal {
  refusals: number
  refused_at: Date
  refusal: { code: ErrorCode; message: string; field?: string; details?: Record<string, unknown> }
}

/** Thrown when another request with the same key was answered while this one was in progress. */
class Answered extends Error {
  readonly reply: Reply
  constructor(reply: Reply) {
    super('another request with this key was answered first')
    this.name = 'Answered'
    this.reply = reply
  }
}

/**
 * Makes an object that requires calls to an external service first, at most once for each key, and
 * returns the same response to all concurrent requests with the same key and payload. The first
 * request to finish decides: if it made the object, the others return that object; if it was
 * rejected, the others are rejected, because its caller was told that nothing was done. A temporary
 * error (5xx) decides nothing, because it tells the caller to retry.
 * @param answered returns the earlier response to the key, or null
 */
export async function decideOnce(
  database: Database,
  key: IdempotencyKey,
  answered: (database: Queryable) => Promise<Reply | null>,
  make: (admit: Admit) => Promise<Reply>,
): Promise<Reply> {
  if (key.name === undefined) return make(async () => undefined)
  const before = await refusalOf(database, key)
  const early = await answered(database)
  if (early) return early
  // The request may have been paused between its arrival and this line, for long enough that
  // another request with the key was rejected.
  if (before && before.refused_at.getTime() > key.askedAt) throw asError(before)
  try {
    return await make(async (tx) => {
      await lockKey(tx, key)
      const late = await answered(tx)
      if (late) throw new Answered(late)
      const last = await refusalOf(tx, key)
      if (last && last.refusals !== before?.refusals) throw asError(last)
    })
  } catch (error) {
    if (error instanceof Answered) return error.reply
    // A row that can be read now may not be on a standby yet; see `madeOnce`.
    if (isConnectionError(error)) throw error
    const late = await database.transaction(async (tx) => {
      await lockKey(tx, key)
      const match = await answered(tx)
      if (!match && error instanceof ApiError && error.status < 500)
        await noteRefusal(tx, key, error)
      return match
    })
    if (late) return late
    throw error
  }
}

/**
 * Serializes responses and rejections of one key until the end of the database transaction. Taken
 * before every other lock.
 */
const lockKey = (tx: Queryable, { scope, subAccountId, name }: IdempotencyKey) =>
  tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `key ${scope} ${subAccountId} ${name}`,
  ])

const refusalOf = (
  database: Queryable,
  { scope, subAccountId, name, payloadHash }: IdempotencyKey,
) =>
  database.one<Refusal>(
    `select refusals, refused_at, refusal from refused_keys where sub_account_id = $1 and scope = $2
      and name = $3 and payload_hash = $4`,
    [subAccountId, scope, name, payloadHash],
  )

const asError = ({ refusal: { code, message, field, details } }: Refusal): ApiError =>
  new ApiError(code, message, {
    ...(field === undefined ? {} : { field }),
    ...(details === undefined ? {} : { details }),
  })

async function noteRefusal(
  tx: Queryable,
  key: IdempotencyKey,
  { code, message, field, details }: ApiError,
): Promise<void> {
  await tx.query(
    `insert into refused_keys (sub_account_id, scope, name, payload_hash, refusal, refused_at)
      values ($1, $2, $3, $4, $5, $6)
     on conflict (sub_account_id, scope, name, payload_hash)
     do update set refusals = refused_keys.refusals + 1, refusal = excluded.refusal,
       refused_at = excluded.refused_at`,
    [
      key.subAccountId,
      key.scope,
      key.name,
      key.payloadHash,
      JSON.stringify({ code, message, field, details }),
      tx.now(),
    ],
  )
}

/**
 * Time in milliseconds after which a rejection is deleted. No request is in progress for that long.
 */
const FORGOTTEN_MS = 3_600_000

/** Deletes rejections that are older than any request that may be in progress. */
export async function deleteOldRefusals(database: Queryable): Promise<void> {
  await database.query(
    `delete from refused_keys where refused_at < $1::timestamptz - $2 * interval '1 millisecond'`,
    [database.now(), FORGOTTEN_MS],
  )
}
