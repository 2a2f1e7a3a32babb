import { createHash } from 'node:crypto'
import type { Queryable } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import { networkOf } from '../http/client-network.ts'

/**
 * Failures in a row before a lock: of one e-mail address, and of one client's address, behind which
 * many may be.
 */
const FREE = { email: 5, address: 30 } as const
const LOCK_MS_MIN = 60_000
const LOCK_MS_MAX = 3_600_000
/** So long without a failure, and they are forgotten. */
export const FORGOTTEN_AFTER_MS = 86_400_000

/**
 * Who tries: the e-mail address, whether or not somebody has it, so that a lock tells nobody who
 * exists.
 */
export interface Trier {
  email: string
  ip: string
}

const subjectsOf = ({
  email,
  ip,
}: Trier): [{ subject: string; free: number }, { subject: string; free: number }] => [
  { subject: `email ${createHash('sha256').update(email).digest('hex')}`, free: FREE.email },
  { subject: `address ${networkOf(ip)}`, free: FREE.address },
]

/**
 * Counts a try as failed before it is looked at, so that as many at once as anybody likes are
 * counted too. What turns out right is taken back by {@link forgive}. In a transaction of its own:
 * what is refused counts nothing.
 * @throws ApiError `RATE_LIMITED` with the time until which nothing is looked at
 */
export async function countTry(tx: Queryable, trier: Trier): Promise<void> {
  const now = tx.now()
  const subjects = subjectsOf(trier)
  for (const { subject, free } of subjects) {
    // The lock doubles with each failure beyond those that are free.
    const counted = await tx.one(
      `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, $2)
       on conflict (subject) do update set
         failures = case when f.last_at < $3 then 1 else f.failures + 1 end,
         last_at = $2,
         locked_until = case when f.last_at >= $3 and f.failures + 1 >= $4
           then $2::timestamptz + least($5 * power(2, least(f.failures + 1 - $4, 20)), $6) * interval '1 millisecond' end
       where f.locked_until is null or f.locked_until <= $2
       returning subject`,
      [subject, now, new Date(now.getTime() - FORGOTTEN_AFTER_MS), free, LOCK_MS_MIN, LOCK_MS_MAX],
    )
    if (counted) continue
    const locked = await tx.one<{ until: Date }>(
      'select locked_until until from sign_in_failures where subject = $1',
      [subject],
    )
    throw tooMany(locked?.until ?? now)
  }
}

/** @throws ApiError whose `locked_until` says until when */
const tooMany = (until: Date): ApiError =>
  new ApiError('RATE_LIMITED', `too many failed sign-ins; wait until ${until.toISOString()}`, {
    details: { locked_until: until.toISOString(), rate: { remaining: 0, reset: until.getTime() } },
  })

/**
 * Takes a counted try back. `all`: somebody has signed in, and what failed before is forgotten for
 * his e-mail address.
 */
export async function forgive(tx: Queryable, trier: Trier, { all = false } = {}): Promise<void> {
  const [email, address] = subjectsOf(trier)
  if (all) await tx.query('delete from sign_in_failures where subject = $1', [email.subject])
  await tx.query(
    'update sign_in_failures set failures = greatest(failures - 1, 0), locked_until = null where subject = any($1)',
    [all ? [address.subject] : [email.subject, address.subject]],
  )
}
