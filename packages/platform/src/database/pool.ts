import { reasonOf } from '@custody/chains/reason'
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import pg from 'pg'
import type { EventType } from './event-types.ts'

type Row = Record<string, unknown>

/** What queries run on: the pool, or one connection inside a transaction. */
export interface Queryable {
  /** All rows of a statement. Parameters are $1, $2, …; bigint and numeric come back as strings. */
  query<T = Row>(text: string, values?: readonly unknown[]): Promise<T[]>
  /** First row, or undefined. */
  one<T = Row>(text: string, values?: readonly unknown[]): Promise<T | undefined>
  /**
   * The time of the Environment, for statements: SQL names no clock of its own where a deadline, a
   * lease or a window depends on it.
   */
  now(): Date
  /** Told to the pool's `onEvent` once what was done here is committed; never where it was not. */
  tell(event: ToldEvent): void
  /** The same for the pool's `onAudit`. */
  tellAudit(entry: ToldAudit): void
}

/** An event of the outbox. `payload` is its JSON text. */
export interface ToldEvent {
  type: EventType
  workspace: string
  payload: string
}

/**
 * An entry of a workspace's audit log: what of it the log of the process may have. `hash` is that
 * of its line, in hexadecimal.
 */
export interface ToldAudit {
  workspace: string
  seq: number
  hash: string
  action: string
  object: string | null
  actorType: string
  actorId: string | null
  ip: string | null
}

export interface Database extends Queryable {
  /**
   * Runs `work` in one transaction. As a statement alone it is done again after a serialization
   * failure or deadlock, up to 5 times.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /**
   * Runs work whose caller can ask again: a connection and the answer of each statement are waited
   * for {@link soonMs} at most, and a commit too, which is unknown afterwards as ever.
   */
  soon<T>(work: () => Promise<T>): Promise<T>
  /** Milliseconds. Clients of HTTP often wait for 10 seconds; they are answered before. */
  readonly soonMs: number
  close(): Promise<void>
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code
/**
 * A server that only reads: a primary of before, to which a connection was open while another was
 * promoted. Nothing of it was done.
 */
const READ_ONLY = '25006'
/** Serialization failures and deadlocks: nothing of it was done. */
const RETRIED = new Set<unknown>(['40001', '40P01'])
const ATTEMPTS = 5

/**
 * What PostgreSQL ended for somebody else's sake is done once more; what came to a server that only
 * reads too, by a new connection.
 */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1, isElsewhere = false; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const isReadOnly = codeOf(error) === READ_ONLY
      if (attempt === ATTEMPTS || !(RETRIED.has(codeOf(error)) || (isReadOnly && !isElsewhere)))
        throw error
      isElsewhere ||= isReadOnly
    }
  }
}

/**
 * The connection is gone, or none could be had; the driver gives its own errors of that kind no
 * code.
 */
class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super(reasonOf(cause), { cause })
    this.name = 'ConnectionLost'
  }
}

/**
 * What was written may be there, or not: the connection was lost while it was committed, or the
 * wait for the standby was cut off, and another primary may not have it. Nobody may take it for
 * failed, or for done; whoever asks by its key later is told.
 */
export class CommitUnknown extends ConnectionLost {
  constructor(cause: unknown) {
    super(cause)
    this.name = 'CommitUnknown'
  }
}

const SYSTEM_CODES = new Set<unknown>([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  // No descriptor for another connection, here, on this machine or in the server's queue.
  'EMFILE',
  'ENFILE',
  'EAGAIN',
])

/**
 * True for errors of a connection that was lost, refused or led to a server that only reads: what
 * was asked may have been done or not.
 */
export function isConnectionError(error: unknown): boolean {
  const code = codeOf(error)
  return (
    error instanceof ConnectionLost ||
    SYSTEM_CODES.has(code) ||
    code === READ_ONLY ||
    (typeof code === 'string' && /^(08|57P0)/.test(code))
  )
}

/**
 * Why the server refuses for now what it would do at another time: its disk is full, it is too
 * slow, or has nothing to spare.
 */
export function shortageOfDatabase(error: unknown): string | null {
  const code = codeOf(error)
  if (code === '53100') return 'its disk is full'
  // It was ended, and all that it did is undone.
  if (code === '57014') return 'the statement exceeded its time limit'
  return typeof code === 'string' && code.startsWith('53')
    ? 'it has no free memory or connection'
    : null
}

/** The same may go well a moment later: it says nothing about what was asked. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error)
  return isConnectionError(error) || shortageOfDatabase(error) !== null || RETRIED.has(code)
}

/** What is asked of the driver's pool. */
export interface ConnectionPool {
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: pg.PoolClient) => void): unknown
  connect(): Promise<pg.PoolClient>
  end(): Promise<void>
}

export interface DatabaseOptions {
  max?: number
  /** In place of the driver's own pool, for a simulation of many processes in one. */
  pool?: (config: pg.PoolConfig) => ConnectionPool
  /** True: a pooler of transactions stands between, so that nothing may be kept in a session. */
  pooled?: boolean
  /**
   * A statement's answer is waited for so long, in milliseconds; longer than the server lets a
   * statement take.
   */
  answerMs?: number
  /** The same for that of a COMMIT, which waits for a standby without an end. */
  commitMs?: number
  /** The same where the caller can ask again: see `Database.soon`. */
  soonMs?: number
  /** The Environment's clock, in milliseconds; without it that of this machine. */
  now?: () => number
  /** What went wrong beside every statement, with a sentence that says what it was. */
  onError?: (error: Error, what: string) => void
  /** What it throws changes nothing: the event is committed. */
  onEvent?: (event: ToldEvent) => void
  /** Called after the commit of an entry of the audit log. What it throws changes nothing. */
  onAudit?: (entry: ToldAudit) => void
}

/**
 * Statements that a connection keeps the plans of; more than the house has, should one be written
 * with its values in its text.
 */
const PREPARED_MAX = 1000

/**
 * Names for statements with parameters, so that a connection parses and plans each once: a third of
 * what PostgreSQL does for the small statements of this house is planning. A text that comes only
 * once is not worth a name.
 */
function statementNames(): (text: string) => string | undefined {
  const names = new Map<string, string | undefined>()
  return (text) => {
    if (!names.has(text)) {
      if (names.size < PREPARED_MAX) names.set(text, undefined)
      return undefined
    }
    const name =
      names.get(text) ??
      `custody_${names.size}_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
    names.set(text, name)
    return name
  }
}

const STATEMENT_MS = 30_000
const IDLE_MS = 60_000
/**
 * Shorter, and what an idle platform does twice at once every ten seconds would open a connection
 * each time.
 */
const KEPT_MS = 60_000
/**
 * More than the server lets a statement take: it does not answer, or what the statement wrote waits
 * for a standby.
 */
const ANSWER_MS = 35_000
/** A COMMIT has little to do itself; it may wait for a standby without an end. */
const COMMIT_MS = 10_000
/** Less than the ten seconds after which many clients of HTTP give up. */
const SOON_MS = 8000
const WITHIN = { statement_timeout: STATEMENT_MS, idle_in_transaction_session_timeout: IDLE_MS }
/** Through a pooler a session is somebody else's next: what is set ends with the transaction. */
const BEGIN_POOLED = [
  'begin',
  ...Object.entries(WITHIN).map(([name, ms]) => `set local ${name} = ${ms}`),
].join('; ')
/**
 * Where PostgreSQL says, in any language, that the wait for a standby was cut off: what was written
 * is committed here alone.
 */
const STANDBY_WAIT = 'SyncRepWaitForLSN'

/**
 * Resolves with the answer. @throws ConnectionLost after so many milliseconds; what was asked goes
 * on
 */
export async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new ConnectionLost(new Error(`the database did not respond within ${ms} ms`))),
      ms,
    )
    // A connection keeps its process alive by itself; the wait for one that is gone must not.
    timer.unref()
  })
  return Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

/**
 * Opens a pool. Connections that the server closes are replaced by the next query, and so are all
 * that are open when one of them turns out to lead to a server that only reads.
 */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const now = () => new Date((options.now ?? Date.now)())
  const { pooled = false, answerMs = ANSWER_MS, commitMs = COMMIT_MS, soonMs = SOON_MS } = options
  const patience = new AsyncLocalStorage<number>()
  const poolOf = options.pool ?? ((config: pg.PoolConfig): ConnectionPool => new pg.Pool(config))
  const pool = poolOf({
    connectionString: url,
    max: options.max ?? 24,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: KEPT_MS,
    keepAlive: true,
    application_name: 'custody',
    ...(pooled ? {} : WITHIN),
  })
  pool.on('error', (error) => options.onError?.(error, 'a database connection was lost'))
  // A connection that is lost while a statement waits fails that statement; the event itself must
  // not end the process.
  const lost = new WeakSet<pg.PoolClient>()
  /** Those that committed what no standby has confirmed. */
  const unconfirmed = new WeakSet<pg.PoolClient>()
  /** Those that were opened since one came to a server that only reads. */
  let fresh = new WeakSet<pg.PoolClient>()
  pool.on('connect', (client) => {
    fresh.add(client)
    client.on('error', () => lost.add(client))
    client.on('notice', ({ routine }) => {
      if (routine === STANDBY_WAIT) unconfirmed.add(client)
    })
  })
  const told = (error: unknown, isLost: boolean): unknown =>
    isLost && codeOf(error) === undefined ? new ConnectionLost(error) : error
  const connect = async (): Promise<pg.PoolClient> => {
    const ms = patience.getStore()
    for (;;) {
      const wanted = pool.connect()
      const client = await (ms === undefined ? wanted : within(wanted, ms)).catch(
        (error: unknown) => {
          // One that comes later is the next caller's.
          wanted.then(
            (late) => late.release(),
            () => undefined,
          )
          throw told(error, true)
        },
      )
      if (fresh.has(client)) return client
      client.release(true)
    }
  }
  const nameOf = pooled ? () => undefined : statementNames()
  const rowsOf = async (
    client: pg.PoolClient,
    text: string,
    values?: readonly unknown[],
    ms = answerMs,
  ): Promise<unknown[]> => {
    try {
      const name = values && nameOf(text)
      const most = Math.min(ms, patience.getStore() ?? ms)
      const { rows } = await within(
        client.query({ ...(name ? { name } : {}), text, values: [...(values ?? [])] }),
        most,
      )
      if (unconfirmed.has(client))
        throw new CommitUnknown(new Error('no standby has confirmed the commit'))
      return rows
    } catch (error) {
      // Whoever comes next must not be given the answer to this.
      if (isConnectionError(error)) lost.add(client)
      if (codeOf(error) === READ_ONLY) fresh = new WeakSet()
      throw told(error, lost.has(client))
    }
  }
  const commit = async (client: pg.PoolClient): Promise<void> => {
    try {
      await rowsOf(client, 'commit', undefined, commitMs)
    } catch (error) {
      throw isConnectionError(error) ? new CommitUnknown(error) : error
    }
  }
  const tell = (listen: () => void): void => {
    try {
      listen()
    } catch (error) {
      options.onError?.(
        error as Error,
        'an event was committed, but its listeners could not be notified',
      )
    }
  }
  /** @param committed calls a listener once what was done is committed */
  const queryable = (
    rows: (text: string, values?: readonly unknown[]) => Promise<unknown[]>,
    committed: (listen: () => void) => void,
  ): Queryable => {
    const query = async <T>(text: string, values?: readonly unknown[]) =>
      (await rows(text, values)) as T[]
    return {
      query,
      one: async <T>(text: string, values?: readonly unknown[]) =>
        (await query<T>(text, values))[0],
      now,
      tell: (event) => committed(() => options.onEvent?.(event)),
      tellAudit: (entry) => committed(() => options.onAudit?.(entry)),
    }
  }
  const alone = (text: string, values?: readonly unknown[]): Promise<unknown[]> =>
    retried(async () => {
      const since = performance.now()
      const client = await connect()
      try {
        // What was waited for a connection is not waited for once more.
        const left =
          patience.getStore() === undefined
            ? answerMs
            : Math.max(1, Math.round(soonMs - (performance.now() - since)))
        return await rowsOf(client, text, values, left)
      } finally {
        client.release(lost.has(client))
      }
    })
  return {
    ...queryable(alone, tell),
    async transaction(work) {
      const { result, listeners } = await retried(async () => {
        const client = await connect()
        let broken = false
        const listeners: (() => void)[] = []
        try {
          await rowsOf(client, pooled ? BEGIN_POOLED : 'begin')
          const result = await work(
            queryable(
              (text, values) => rowsOf(client, text, values),
              (listen) => listeners.push(listen),
            ),
          )
          await commit(client)
          return { result, listeners }
        } catch (error) {
          broken = lost.has(client)
          if (!broken) await rowsOf(client, 'rollback').catch(() => (broken = true))
          throw error
        } finally {
          client.release(broken)
        }
      })
      listeners.forEach(tell)
      return result
    },
    soon: (work) => patience.run(soonMs, work),
    soonMs,
    close: () => pool.end(),
  }
}
