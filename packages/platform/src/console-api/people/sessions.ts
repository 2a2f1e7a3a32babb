import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Actor } from './audit-log.ts'
import { hashOfToken, newToken } from './token.ts'

/**
 * Time in milliseconds without a request after which a session ends, and maximum lifetime of every
 * session.
 */
const IDLE_MS = 12 * 3_600_000
export const LIFE_MS = 7 * 86_400_000
/** Resolution of a session's last-seen time, in milliseconds. */
const SEEN_EVERY_MS = 60_000
/** Cache time in milliseconds. The end of a session reaches every process within this time. */
export const REMEMBER_MS = 1000
const REMEMBERED_MAX = 10_000
const USER_AGENT_MAX = 300

/** Source of a request. */
export interface From {
  ip: string
  userAgent: string
  origin: string
  isSecure: boolean
}

export interface Session {
  id: string
  personId: string
  email: string
  name: string
  /** Time of the last confirmation of a factor. */
  confirmedAt: Date
}

interface CachedSession {
  session: Session
  isOver(now: number): boolean
  at: number
  seenAt: number
}

/**
 * Sessions of the people who are signed in. A session's token is only in its cookie; the database
 * has its hash.
 */
export class Sessions {
  readonly #database: Database
  readonly #environment: Environment
  readonly #cache = new Map<string, CachedSession>()

  constructor(database: Database, environment: Environment) {
    this.#database = database
    this.#environment = environment
  }

  /** Returns the session of a cookie's token; null if it does not exist or has expired. */
  async find(token: string): Promise<Session | null> {
    const hash = hashOfToken(token)
    const now = this.#environment.now()
    const key = hash.toString('hex')
    const existing = this.#cache.get(key)
    const isKnown =
      existing &&
      Math.abs(now - existing.at) < REMEMBER_MS &&
      Math.abs(now - existing.seenAt) < SEEN_EVERY_MS
    if (isKnown) return existing.isOver(now) ? null : existing.session
    const row = await this.#database.one<{
      id: string
      person_id: string
      email: string
      name: string
      confirmed_at: Date
      expires_at: Date
      last_seen_at: Date
    }>(
      `select s.id, s.person_id, p.email, p.name, s.confirmed_at, s.expires_at, s.last_seen_at
       from sessions s join people p on p.id = s.person_id
       where s.token_hash = $1 and s.ended_at is null and s.expires_at > $2 and s.last_seen_at > $3`,
      [hash, new Date(now), new Date(now - IDLE_MS)],
    )
    if (!row) {
      this.#cache.delete(key)
      return null
    }
    let seenAt = row.last_seen_at.getTime()
    if (now - seenAt >= SEEN_EVERY_MS) {
      await this.#database.query(
        'update sessions set last_seen_at = $2 where id = $1 and last_seen_at < $2',
        [row.id, new Date(now)],
      )
      seenAt = now
    }
    const session = {
      id: row.id,
      personId: row.person_id,
      email: row.email,
      name: row.name,
      confirmedAt: row.confirmed_at,
    }
    if (this.#cache.size >= REMEMBERED_MAX) this.#cache.clear()
    const expires = row.expires_at.getTime()
    this.#cache.set(key, { session, isOver: (at) => at >= expires, at: now, seenAt })
    return session
  }

  /**
   * Opens a session, in the transaction in which the person signed in.
   * @returns its token, for the cookie
   */
  async open(tx: Queryable, personId: string, from: From): Promise<{ id: string; token: string }> {
    const id = this.#environment.uuid()
    const token = newToken(this.#environment)
    const now = tx.now()
    await tx.query(
      `insert into sessions (id, person_id, token_hash, created_at, last_seen_at, confirmed_at,
        expires_at, ip, user_agent)
       values ($1, $2, $3, $4, $4, $4, $5, $6, $7)`,
      [
        id,
        personId,
        hashOfToken(token),
        now,
        new Date(now.getTime() + LIFE_MS),
        from.ip,
        from.userAgent.slice(0, USER_AGENT_MAX),
      ],
    )
    return { id, token }
  }

  /** Replaces the token of a session, so that the old one becomes invalid. */
  async rotate(tx: Queryable, id: string): Promise<string> {
    const token = newToken(this.#environment)
    await tx.query('update sessions set token_hash = $2 where id = $1', [id, hashOfToken(token)])
    return token
  }

  /**
   * Ends sessions of a person.
   * @param which one of them, or all but one; absent: all
   * @returns their IDs
   */
  async end(
    tx: Queryable,
    personId: string,
    which: { id?: string; except?: string } = {},
  ): Promise<string[]> {
    const rows = await tx.query<{ id: string }>(
      `update sessions set ended_at = $2 where person_id = $1 and ended_at is null
         and ($3::uuid is null or id = $3) and ($4::uuid is null or id <> $4) returning id`,
      [personId, tx.now(), which.id ?? null, which.except ?? null],
    )
    return rows.map(({ id }) => id)
  }

  /**
   * Clears the cache. Called after the end of a session is committed, so that it takes effect
   * immediately in this process.
   */
  forget(): void {
    this.#cache.clear()
  }
}

/** Returns a signed-in person as actor for the audit log. */
export const actorOf = (
  session: Pick<Session, 'id' | 'personId' | 'email'>,
  from: Pick<From, 'ip'>,
): Actor => ({
  type: 'person',
  id: session.personId,
  name: session.email,
  session: session.id,
  ip: from.ip,
})
