import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { findAccount, type AccountRow, type Identity } from './account.ts'
import type { Venue } from './venue.ts'

/** Value of `venue_account`, and the identity that follows from it. */
export interface VenueAccount {
  venueAccount: string
  identity: Extract<Identity, 'proven' | 'unproven'>
}

/**
 * Returns how an account is recognized. Without an ID from the exchange only the same key is known
 * to belong to the same account.
 */
export const venueAccountOf = (accountId: string | null, keyHash: string): VenueAccount =>
  accountId === null
    ? { venueAccount: `key ${keyHash}`, identity: 'unproven' }
    : { venueAccount: `id ${accountId}`, identity: 'proven' }

/**
 * Reads how an account is recognized, if that can have changed since it was stored.
 * @returns null if the exchange need not be queried
 * @throws VenueError
 */
export async function readVenueAccount(
  venue: Venue,
  { identity, venue_account: known, key_hash: hash }: AccountRow,
): Promise<VenueAccount | null> {
  const isById = known?.startsWith('id ') === true
  const isFinal = identity !== 'unread' && (isById || !venue.reportsAccountId)
  return isFinal ? null : venueAccountOf(await venue.accountId(), hash)
}

/** Identities of accounts that count, with the time of their link. */
type Linked = Pick<AccountRow, 'id' | 'identity' | 'created_at'>

/**
 * Returns which of the accounts that are the same at the exchange counts: the one linked first. A
 * duplicate stays one as long as another account counts.
 * @param linked all of them, in the order in which they were linked
 * @param id the account whose identity is determined
 */
export function countedOf(linked: readonly Linked[], id: string): string {
  const others = linked.filter((each) => each.identity === 'proven' || each.identity === 'unproven')
  const own = linked.find((each) => each.id === id)
  if (own === undefined || (own.identity === 'duplicate' && others.length > 0))
    return (others[0] as Linked).id
  const candidates = linked.filter((each) => each === own || others.includes(each))
  return (candidates[0] as Linked).id
}

/**
 * Stores how an account is recognized. If other linked accounts are the same, only one of them
 * remains counted.
 * @returns all accounts whose identity has changed, after the change. The caller updates their
 *   ledger and emits their events.
 */
export async function settleIdentity(
  tx: Queryable,
  { id, exchange }: Pick<AccountRow, 'id' | 'exchange'>,
  { venueAccount, identity }: VenueAccount,
): Promise<AccountRow[]> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `exchange account ${exchange} ${venueAccount}`,
  ])
  const linked = await tx.query<AccountRow>(
    `select * from exchange_accounts
     where status <> 'deleted' and exchange = $1 and (venue_account = $2 or id = $3)
     order by created_at, id for update`,
    [exchange, venueAccount, id],
  )
  if (!linked.some((each) => each.id === id)) return []
  const counted = countedOf(linked, id)
  const wanted = linked.map((row) => ({
    row,
    identity: row.id === counted ? identity : ('duplicate' as const),
  }))
  const changed = wanted
    .filter(
      ({ row, identity: next }) => row.identity !== next || row.venue_account !== venueAccount,
    )
    // Duplicates first, so that two accounts never count at the same time.
    .sort((a, b) => Number(a.identity !== 'duplicate') - Number(b.identity !== 'duplicate'))
  const after: AccountRow[] = []
  for (const { row, identity: next } of changed) {
    after.push(
      (await tx.one<AccountRow>(
        `update exchange_accounts set identity = $2, venue_account = $3, updated_at = $4
         where id = $1 returning *`,
        [row.id, next, venueAccount, tx.now()],
      )) as AccountRow,
    )
  }
  return after
}

/**
 * Refuses an operation of an account that is not counted, because its results could not be booked.
 * @param field name of the request field that names the account
 * @throws ApiError `EXCHANGE_ACCOUNT_LINKED`
 */
export function assertCounted({ identity, exchange }: AccountRow, field: string): void {
  if (identity !== 'duplicate') return
  throw new ApiError(
    'EXCHANGE_ACCOUNT_LINKED',
    `${field}: another linked account is the same account at ${exchange}, and only that one is used; unlink this one`,
    { field },
  )
}

/**
 * Returns an exchange account of the caller's sub-account that operations may use.
 * @throws ApiError `NOT_FOUND` or `EXCHANGE_ACCOUNT_LINKED`
 */
export async function findCounted(
  ...[database, caller, input, field = 'id', locked = false]: Parameters<typeof findAccount>
): Promise<AccountRow> {
  const account = await findAccount(database, caller, input, field, locked)
  assertCounted(account, field)
  return account
}
