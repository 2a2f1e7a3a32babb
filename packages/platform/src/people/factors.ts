import type { Queryable } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import { writeAuditEverywhere, type Deed } from './audit-log.ts'
import type { Visitor } from './endpoint.ts'
import { actorOf } from './sessions.ts'

/** Changes something of one's own, and tells every workspace of it. */
export async function changeOwn<T>(
  { database, people }: Services,
  { session, from }: Pick<Visitor, 'session' | 'from'>,
  deed: Deed,
  change: (tx: Queryable) => Promise<T>,
): Promise<T> {
  const result = await database.transaction(async (tx) => {
    const done = await change(tx)
    await writeAuditEverywhere(tx, session.personId, actorOf(session, from), deed)
    return done
  })
  people.sessions.forget()
  return result
}

/**
 * Called after a factor was taken away, before the commit: it must not be the last.
 * @throws ApiError `LAST_FACTOR`
 */
export async function assertCanSignIn(tx: Queryable, personId: string): Promise<void> {
  // Of two who each take another of the last two away, the second waits here and is refused.
  const row = await tx.one<{ can: boolean }>(
    `select (password_hash is not null and totp_secret is not null) or exists (select 1 from passkeys where person_id = $1) can
     from people where id = $1`,
    [personId],
  )
  if (!row?.can)
    throw new ApiError('LAST_FACTOR', 'this is your last way to sign in: add another one first')
}

/** Holds a person's factors until the commit. */
export const lockPerson = (tx: Queryable, personId: string): Promise<unknown> =>
  tx.query('select 1 from people where id = $1 for no key update', [personId])
