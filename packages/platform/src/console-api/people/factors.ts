import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { People } from './people.ts'
import { writeAuditEverywhere, type AuditAction } from './audit-log.ts'
import type { Visitor } from './endpoint.ts'
import { actorOf } from './sessions.ts'

interface Services {
  database: Database
  people: People
}

/**
 * Changes a person's own sign-in settings and records the change in the audit log of each of their
 * workspaces.
 */
export async function changeOwn<T>(
  { database, people }: Services,
  { session, from }: Pick<Visitor, 'session' | 'from'>,
  deed: AuditAction,
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
 * Checks that a person can still sign in. Called after a factor was removed, before the commit.
 * @throws ApiError `LAST_FACTOR` if it was the last one
 */
export async function assertCanSignIn(tx: Queryable, personId: string): Promise<void> {
  // If two concurrent requests each remove one of the last two factors, the second one waits here
  // and is rejected.
  const row = await tx.one<{ can: boolean }>(
    `select (password_hash is not null and totp_secret is not null)
      or exists (select 1 from passkeys where person_id = $1) can
     from people where id = $1`,
    [personId],
  )
  if (!row?.can)
    throw new ApiError('LAST_FACTOR', 'this is your last way to sign in: add another one first')
}

/** Locks a person's factors until the commit. */
export const lockPerson = (tx: Queryable, personId: string): Promise<unknown> =>
  tx.query('select 1 from people where id = $1 for no key update', [personId])
