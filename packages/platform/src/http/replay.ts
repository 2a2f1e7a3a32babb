import { isConnectionError, type Queryable } from '../database/pool.ts'
import { sequenceId } from '@custody/request-auth/bodies'
import { assetName } from './schemas.ts'
import type { Caller, Reply } from './endpoint.ts'
import { isSamePayload } from '../engine/payload.ts'

/** The first answer, once more. */
export function replayed(response: string, same: boolean): Reply {
  const warning =
    '299 custody "sequence_id was used before with another payload; the first answer is given and nothing new was done"'
  return {
    text: response,
    headers: { 'idempotent-replayed': 'true', ...(same ? {} : { warning }) },
  }
}

/**
 * The same of a transaction: earlier versions had null where there is no memo, and now that is an
 * empty text, as the document says. (Within a text the quotes of the name would be escaped.)
 */
export const replayedTransaction = (response: string, same: boolean): Reply =>
  replayed(response.replace('"memo":null', '"memo":""'), same)

/** What was answered to this `sequence_id` before; null where it is new, or none was given. */
export async function answeredBefore(
  database: Queryable,
  workspace: string,
  walletId: string,
  sequenceId: string | undefined,
  payloadHash: string,
): Promise<Reply | null> {
  if (sequenceId === undefined) return null
  const known = await database.one<{ response: string; payload_hash: string }>(
    'select response, payload_hash from idempotency where workspace_id = $3 and wallet_id = $1 and sequence_id = $2',
    [walletId, sequenceId, workspace],
  )
  return known
    ? replayedTransaction(known.response, isSamePayload(known.payload_hash, payloadHash))
    : null
}

/**
 * A key as it was sent; undefined where there is none, or none that a request could have been taken
 * with.
 */
export const sequenceIdIn = (value: unknown): string | undefined => sequenceId.safeParse(value).data

/**
 * As {@link answeredBefore}, by a wallet's asset as it was sent: whether the asset and its network
 * are still offered does not matter.
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

/** The same of what a sub-account's own keys count in, and whose rows keep their first answer. */
export async function answeredTo(
  database: Queryable,
  table: 'invoices' | 'orders' | 'exchange_transfers',
  { workspaceId, subAccountId }: Caller,
  sequenceId: string | undefined,
  payloadHash: string,
): Promise<Reply | null> {
  if (sequenceId === undefined) return null
  const known = await database.one<{ response: string; payload_hash: string }>(
    `select response, payload_hash from ${table} where workspace_id = $3 and sub_account_id = $1 and sequence_id = $2`,
    [subAccountId, sequenceId, workspaceId],
  )
  return known ? replayed(known.response, isSamePayload(known.payload_hash, payloadHash)) : null
}

/**
 * Makes something at most once: what was answered before goes before all that time may change, and
 * before a refusal too, for the same request may have been taken meanwhile, and who reads a refusal
 * then would pay again.
 */
export async function onceOnly(
  answered: () => Promise<Reply | null>,
  make: () => Promise<Reply>,
): Promise<Reply> {
  return (await answered()) ?? (await madeOnce(answered, make))
}

/**
 * The same where `make` itself answers what was answered before, and asks nobody outside. Where the
 * connection was lost while it wrote, nothing is looked up: a row that can be read may be on no
 * standby yet, and would be gone with its server. The next request is certain, as its nonce is
 * committed first, which waits for the standby to have all that was written before.
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
