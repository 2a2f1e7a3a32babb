import { isConnectionError, type Queryable } from '../database/pool.ts'
import { sequenceId } from '@custody/request-auth/bodies'
import { assetName } from './schemas.ts'
import type { Caller, Reply } from './endpoint.ts'
import { isSamePayload } from '../engine/payload.ts'

/** Returns the first response again. */
export function replayed(response: string, same: boolean): Reply {
  const warning =
    '299 custody "sequence_id was used before with another payload; the first answer is given and nothing new was done"'
  return {
    text: response,
    headers: { 'idempotent-replayed': 'true', ...(same ? {} : { warning }) },
  }
}

/**
 * Returns the first response of a transaction again. Earlier versions stored null for a missing
 * memo; it is now an empty string, as documented. (The quotes of the field's name would be escaped
 * within a JSON string, so the replacement only matches the field.)
 */
export const replayedTransaction = (response: string, same: boolean): Reply =>
  replayed(response.replace('"memo":null', '"memo":""'), same)

/** Returns the earlier response to this `sequence_id`; null if it is new or missing. */
export async function answeredBefore(
  database: Queryable,
  workspace: string,
  walletId: string,
  sequenceId: string | undefined,
  payloadHash: string,
): Promise<Reply | null> {
  if (sequenceId === undefined) return null
  const existing = await database.one<{ response: string; payload_hash: string }>(
    `select response, payload_hash from idempotency where workspace_id = $3 and wallet_id = $1
      and sequence_id = $2`,
    [walletId, sequenceId, workspace],
  )
  return existing
    ? replayedTransaction(existing.response, isSamePayload(existing.payload_hash, payloadHash))
    : null
}

/**
 * Returns a `sequence_id` as sent; undefined if it is missing or invalid, because no request can
 * have been accepted with such an ID.
 */
export const sequenceIdIn = (value: unknown): string | undefined => sequenceId.safeParse(value).data

/**
 * As {@link answeredBefore}, for the asset of a wallet as sent in the request. The asset and its
 * network may be unsupported by now.
 */
export async function answeredInWallet(
  database: Queryable,
  { workspaceId, subAccountId }: Caller,
  asset: unknown,
  sequenceId: string | undefined,
  payloadHash: string,
): Promise<Reply | null> {
  const ticker = assetName.safeParse(asset).data
  if (sequenceId === undefined || ticker === undefined) return null
  const wallet = await database.one<{ id: string }>(
    'select id from wallets where workspace_id = $1 and sub_account_id = $2 and asset = $3',
    [workspaceId, subAccountId, ticker],
  )
  return wallet ? answeredBefore(database, workspaceId, wallet.id, sequenceId, payloadHash) : null
}

/**
 * Returns the earlier response to an idempotency key that is unique within a sub-account, from a
 * table whose rows store their first response.
 */
export async function answeredTo(
  database: Queryable,
  table: 'invoices' | 'orders' | 'exchange_transfers',
  { workspaceId, subAccountId }: Caller,
  sequenceId: string | undefined,
  payloadHash: string,
): Promise<Reply | null> {
  if (sequenceId === undefined) return null
  const existing = await database.one<{ response: string; payload_hash: string }>(
    `select response, payload_hash from ${table} where workspace_id = $3 and sub_account_id = $1
      and sequence_id = $2`,
    [subAccountId, sequenceId, workspaceId],
  )
  return existing
    ? replayed(existing.response, isSamePayload(existing.payload_hash, payloadHash))
    : null
}

/**
 * Makes an object at most once. An earlier response takes precedence over every check whose result
 * can change with time. It is also looked up before an error is returned, because a concurrent
 * request with the key may have been accepted, and a caller who receives an error would pay again.
 */
export async function onceOnly(
  answered: () => Promise<Reply | null>,
  make: () => Promise<Reply>,
): Promise<Reply> {
  return (await answered()) ?? (await madeOnce(answered, make))
}

/**
 * As {@link onceOnly}, if `make` itself returns an earlier response and calls no external service.
 * If the connection is lost during the write, nothing is looked up: a row that can be read may not
 * be on a standby yet and would be lost with its server. The result is certain for the next
 * request, because the commit of its nonce waits until the standby has all earlier writes.
 */
export async function madeOnce(
  answered: () => Promise<Reply | null>,
  make: () => Promise<Reply>,
): Promise<Reply> {
  try {
    return await make()
  } catch (refusal) {
    if (isConnectionError(refusal)) throw refusal
    const late = await answered()
    if (late) return late
    throw refusal
  }
}
