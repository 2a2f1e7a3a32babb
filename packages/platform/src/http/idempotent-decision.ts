import { isConnectionError, type Database, type Queryable } from '../database/pool.ts'
import { ApiError, type ErrorCode } from '../errors.ts'
import type { Reply } from './endpoint.ts'

/** What a sub-account's idempotency key stands for. */
export interface IdempotencyKey {
  scope: 'orders' | 'exchange_transfers' | 'conversions' | 'quotes'
  subAccountId: string
  /** Undefined: the request has none. */
  name: string | undefined
  payloadHash: string
  /** When the request came: what was refused after that, under this key, refuses it too. */
  askedAt: number
}

/**
 * To be called first in the commit that makes what is asked for. @throws where the key has an
 * answer by then
 */
export type Admit = (tx: Queryable) => Promise<void>

interface Refusal {
  refusals: number
  refused_at: Date
  refusal: { code: ErrorCode; message: string; field?: string; details?: Record<string, unknown> }
}

/** A request under the same key was answered while this one was under way. */
class Answered extends Error {
  readonly reply: Reply
  constructor(reply: Reply) {
    super('another request with this key was answered first')
    this.name = 'Answered'
    this.reply = reply
  }
}

/**
 * Makes something that others outside are asked about first, at most once for a key, and with one
 * answer: whoever comes to its end first decides for all that are under way with the key and the
 * same payload. What was made meanwhile is answered, and what was refused meanwhile is refused, for
 * its caller has been told that nothing was done. A refusal that time may heal (5xx) decides
 * nothing: it tells callers to ask again.
 * @param answered what was answered to the key before
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
  // It may have stood still between its coming and this, for long enough that its caller was
  // refused by another.
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
    // What can be read now may be on no standby yet; see madeOnce.
    if (isConnectionError(error)) throw error
    const late = await database.transaction(async (tx) => {
      await lockKey(tx, key)
      const found = await answered(tx)
      if (!found && error instanceof ApiError && error.status < 500)
        await noteRefusal(tx, key, error)
      return found
    })
    if (late) return late
    throw error
  }
}

/**
 * Answers and refusals of one key follow each other; until the database transaction ends. Before
 * every other lock.
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
    'select refusals, refused_at, refusal from refused_keys where sub_account_id = $1 and scope = $2 and name = $3 and payload_hash = $4',
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
    `insert into refused_keys (sub_account_id, scope, name, payload_hash, refusal, refused_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (sub_account_id, scope, name, payload_hash)
     do update set refusals = refused_keys.refusals + 1, refusal = excluded.refusal, refused_at = excluded.refused_at`,
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

/** No request is under way for so long. */
const FORGOTTEN_MS = 3_600_000

/** Forgets refusals that no request under way can be older than. */
export async function deleteOldRefusals(database: Queryable): Promise<void> {
  await database.query(
    `delete from refused_keys where refused_at < $1::timestamptz - $2 * interval '1 millisecond'`,
    [database.now(), FORGOTTEN_MS],
  )
}
