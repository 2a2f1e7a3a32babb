import { createHash } from 'node:crypto'
import type { Queryable } from '../../../core/database/pool.ts'
import type { Environment } from '../../../core/environment.ts'
import type { ProviderName } from '../levels.ts'
import { ProviderError } from './provider-error.ts'

/**
 * Minimum interval between requests of one token in milliseconds; 0: the provider documents no
 * limit. TRM: 10 requests a second. Elliptic: 15 a second for synchronous analyses and 500 a minute
 * for all requests, of which the second is lower.
 */
export const INTERVAL_MS: Readonly<Record<ProviderName, number>> = {
  CHAINALYSIS: 0,
  ELLIPTIC: 120,
  TRM: 100,
}
/** Maximum wait for a slot in milliseconds. A transaction that would wait longer is retried later. */
const WAIT_MS_MAX = 5000
/** Pause in milliseconds after a 429 response that states none, and the longest that is accepted. */
const PAUSE_MS = 60_000
const PAUSE_MS_MAX = 15 * 60_000

/** Allots the times at which requests of one token may be sent. */
export interface Pace {
  /**
   * Waits until a request may be sent.
   * @throws ProviderError `rate-limited`, with the time after which to retry, if that takes too
   *   long
   */
  wait(provider: ProviderName, token: string): Promise<void>
  /** Sends nothing until a time, in milliseconds since the Unix Epoch. */
  pause(provider: ProviderName, token: string, until: number): Promise<void>
}

const keyOf = (provider: ProviderName, token: string): string =>
  createHash('sha256').update(`${provider} ${token}`).digest('hex')

/** Creates a pace that all processes of an installation share through its database. */
export const databasePace = (database: Queryable, environment: Environment): Pace => ({
  async wait(provider, token) {
    const [key, now, interval] = [keyOf(provider, token), environment.now(), INTERVAL_MS[provider]]
    const slot = await database.one<{ at: Date }>(
      `insert into aml_pace as p (key, next_at) values ($1, $2::timestamptz + $3::interval)
       on conflict (key) do update set next_at = greatest(p.next_at, $2) + $3::interval
         where p.next_at <= $4
       returning next_at - $3::interval "at"`,
      [key, new Date(now), `${interval} milliseconds`, new Date(now + WAIT_MS_MAX)],
    )
    if (slot) {
      const waitMs = slot.at.getTime() - now
      if (waitMs > 0) await environment.sleep(waitMs)
      return
    }
    const next = await database.one<{ at: Date }>(
      'select next_at "at" from aml_pace where key = $1',
      [key],
    )
    throw new ProviderError(
      'rate-limited',
      'the rate limit of the provider is used up',
      Math.max(0, (next?.at.getTime() ?? now) - now),
    )
  },
  async pause(provider, token, until) {
    const at = new Date(Math.min(until, environment.now() + PAUSE_MS_MAX))
    await database.query(
      `insert into aml_pace as p (key, next_at) values ($1, $2)
       on conflict (key) do update set next_at = greatest(p.next_at, excluded.next_at)`,
      [keyOf(provider, token), at],
    )
  },
})

/** Allots every time immediately, for tests of single adapters. */
export const unpaced: Pace = { wait: async () => undefined, pause: async () => undefined }

const SECONDS = /^\d{1,10}$/
/** Numbers above this are seconds since the Unix Epoch, not durations. */
const EPOCH_S_MIN = 1_000_000_000

/**
 * Returns the time until which a 429 response asks to wait, in milliseconds since the Unix Epoch:
 * `Retry-After` (seconds or a date), otherwise `X-RateLimit-Reset` or `RateLimit-Reset` (seconds,
 * or seconds since the Epoch), otherwise a minute.
 */
export function retryAt(headers: Headers, now: number): number {
  for (const name of ['retry-after', 'x-ratelimit-reset', 'ratelimit-reset']) {
    const text = headers.get(name)?.trim() ?? ''
    const at = SECONDS.test(text)
      ? Number(text) >= EPOCH_S_MIN
        ? Number(text) * 1000
        : now + Number(text) * 1000
      : name === 'retry-after'
        ? Date.parse(text)
        : Number.NaN
    if (Number.isFinite(at)) return Math.min(Math.max(at, now + 1000), now + PAUSE_MS_MAX)
  }
  return now + PAUSE_MS
}
