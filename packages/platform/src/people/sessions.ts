import type { Database, Queryable } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { Actor } from './audit-log.ts'
import { hashOfToken, newToken } from './token.ts'

/** A session that nobody used for so long is over, and so is each this long after its beginning. */
const IDLE_MS = 12 * 3_600_000
export const LIFE_MS = 7 * 86_400_000
/** How exactly it is known when a session was last seen. */
const SEEN_EVERY_MS = 60_000
/** The end of a session reaches every process within this time. */
export const REMEMBER_MS = 1000
const REMEMBERED_MAX = 10_000
const USER_AGENT_MAX = 300

/** From where somebody asks. */
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
  /** When a factor was last shown. */
  confirmedAt: Date
}

interface Known {
  session: Session
  isOver(now: number): boolean
  at: number
  seenAt: number
}

/** Who is signed in. A session's token is in its cookie alone; here is what it hashes to. */
export class Sessions {
  readonly #database: Database
  readonly #environment: Environment
  readonly #known = new Map<string, Known>()

  constructor(database: Database, environment: Environment) {
    this.#database = database
    this.#environment = environment
  }

  /** The session of a cookie's token; null where there is none, or its time is over. */
  async find(token: string): Promise<Session | null> {
    const hash = hashOfToken(token)
    const now = this.#environment.now()
    const key = hash.toString('hex')
    const known = this.#known.get(key)
    const isKnown =
      known &&
      Math.abs(now - known.at) < REMEMBER_MS &&
      Math.abs(now - known.seenAt) < SEEN_EVERY_MS
    if (isKnown) return known.isOver(now) ? null : known.session
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
      this.#known.delete(key)
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
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear()
    const expires = row.expires_at.getTime()
    this.#known.set(key, { session, isOver: (at) => at >= expires, at: now, seenAt })
    return session
  }

  /**
   * Opens a session, in the transaction in which somebody signed in.
   * @returns its token, for the cookie
   */
  async open(tx: Queryable, personId: string, from: From): Promise<{ id: string; token: string }> {
    const id = this.#environment.uuid()
    const token = newToken(this.#environment)
    const now = tx.now()
    await tx.query(
      `insert into sessions (id, person_id, token_hash, created_at, last_seen_at, confirmed_at, expires_at, ip, user_agent)
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

  /** Gives a session another token: whoever knew the old one knows nothing any more. */
  async rotate(tx: Queryable, id: string): Promise<string> {
    const token = newToken(this.#environment)
    await tx.query('update sessions set token_hash = $2 where id = $1', [id, hashOfToken(token)])
    return token
  }

  /**
   * Ends sessions of a person's.
   * @param which one of them, or all but one; absent: all
   * @returns their ids
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

  /** Forgets what is remembered, once an end is committed: in this process it counts at once. */
  forget(): void {
    this.#known.clear()
  }
}

/** A signed-in person as the audit log names him. */
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
