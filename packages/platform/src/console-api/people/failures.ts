import { createHash } from 'node:crypto'
import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { networkOf } from '../../core/http/client-network.ts'

/**
 * Number of consecutive failures before a lock: for one email address, and for one client address,
 * which many people may share.
 */
const FREE = { email: 5, address: 30 } as const
const LOCK_MS_MIN = 60_000
const LOCK_MS_MAX = 3_600_000
/** Time in milliseconds without a failure after which earlier failures are deleted. */
export const FORGOTTEN_AFTER_MS = 86_400_000

/**
 * Whose attempts are counted: the email address, whether or not it belongs to a person, so that a
 * lock does not reveal which people exist.
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
 * Counts an attempt as failed before it is checked, so that any number of concurrent attempts are
 * counted too. {@link reset} undoes this for a successful attempt. Uses a transaction of its own.
 * A rejected attempt is not counted.
 * @throws ApiError `RATE_LIMITED` with the time until which attempts are not checked
 */
export async function countTry(tx: Queryable, trier: Trier): Promise<void> {
  const now = tx.now()
  const subjects = subjectsOf(trier)
  for (const { subject, free } of subjects) {
    // The duration of the lock doubles with each failure above the free ones.
    const counted = await tx.one(
      `insert into sign_in_failures as f (subject, failures, last_at) values ($1, 1, $2)
       on conflict (subject) do update set
         failures = case when f.last_at < $3 then 1 else f.failures + 1 end,
         last_at = $2,
         locked_until = case when f.last_at >= $3 and f.failures + 1 >= $4
           then $2::timestamptz + least($5 * power(2, least(f.failures + 1 - $4, 20)),
             $6) * interval '1 millisecond' end
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

/** Returns an error whose `locked_until` is the end of the lock. */
const tooMany = (until: Date): ApiError =>
  new ApiError('RATE_LIMITED', `too many failed sign-ins; wait until ${until.toISOString()}`, {
    details: { locked_until: until.toISOString(), rate: { remaining: 0, reset: until.getTime() } },
  })

/**
 * Undoes the count of an attempt. `all`: the person has signed in, so all earlier failures of their
 * email address are deleted.
 */
export async function reset(tx: Queryable, trier: Trier, { all = false } = {}): Promise<void> {
  const [email, address] = subjectsOf(trier)
  if (all) await tx.query('delete from sign_in_failures where subject = $1', [email.subject])
  await tx.query(
    `update sign_in_failures set failures = greatest(failures - 1, 0), locked_until = null
      where subject = any($1)`,
    [all ? [address.subject] : [email.subject, address.subject]],
  )
}
