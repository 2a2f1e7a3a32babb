import { reasonOf } from '@custody/chains/reason'
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import pg from 'pg'
import type { EventType } from './event-types.ts'

type Row = Record<string, unknown>

/** Runs queries: the pool, or one connection within a transaction. */
export interface Queryable {
  /**
   * Returns all rows of a statement. Parameters are $1, $2, …; bigint and numeric are returned as
   * strings.
   */
  query<T = Row>(text: string, values?: readonly unknown[]): Promise<T[]>
  /** Returns the first row, or undefined. */
  one<T = Row>(text: string, values?: readonly unknown[]): Promise<T | undefined>
  /**
   * Returns the time of the environment, for statements: SQL uses no clock of its own if a
   * deadline, a lease or a window depends on it.
   */
  now(): Date
  /**
   * Passes an event to the pool's `onEvent` after the commit; never if the transaction is rolled
   * back.
   */
  emit(event: EmittedEvent): void
  /**
   * Passes an audit-log entry to the pool's `onAudit` after the commit; never if the transaction is
   * rolled back.
   */
  emitAudit(entry: EmittedAudit): void
}

/** An event of the outbox. `payload` is its JSON text. */
export interface EmittedEvent {
  type: EventType
  workspace: string
  payload: string
}

/**
 * The part of an audit-log entry that may be in the process's log. `hash`: hexadecimal hash of its
 * line.
 */
export interface EmittedAudit {
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
   * Runs `work` in one transaction. Like a single statement, it is repeated after a serialization
   * failure or deadlock, up to 5 times.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /**
   * Runs work whose caller can retry: the wait for a connection, for the result of each statement
   * and for the commit is limited to {@link shortTimeoutMs}. The outcome of a commit that exceeds it is
   * unknown.
   */
  withShortTimeout<T>(work: () => Promise<T>): Promise<T>
  /**
   * Maximum wait of `withShortTimeout`, in milliseconds. Many HTTP clients have a timeout of 10
   * seconds, so this is shorter.
   */
  readonly shortTimeoutMs: number
  close(): Promise<void>
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code
/**
 * SQLSTATE of a read-only server: a former primary with an open connection, after another server
 * was promoted. The statement had no effect.
 */
const READ_ONLY = '25006'
/** SQLSTATEs of serialization failures and deadlocks, after which the statement had no effect. */
const RETRIED = new Set<unknown>(['40001', '40P01'])
const ATTEMPTS = 5

/**
 * Repeats work that PostgreSQL aborted because of another transaction, or that reached a read-only
 * server; in the latter case on a new connection.
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
 * The connection was lost, or none was available. The driver's own errors of this kind have no
 * code.
 */
class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super(reasonOf(cause), { cause })
    this.name = 'ConnectionLost'
  }
}

/**
 * The outcome of a commit is unknown: the connection was lost during the commit, or the wait for
 * the standby was aborted, so another primary may not have the data. Callers must treat it neither
 * as failed nor as done; a later request with the same idempotency key returns the outcome.
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
  // No file descriptor is available for another connection, in this process, on this machine or in
  // the server's queue.
  'EMFILE',
  'ENFILE',
  'EAGAIN',
])

/**
 * Returns whether a connection was lost, was refused or led to a read-only server. The outcome of
 * the statement is unknown.
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
 * Returns the reason why the server rejects a statement temporarily: its disk is full, it is too
 * slow, or it lacks resources.
 */
export function shortageOfDatabase(error: unknown): string | null {
  const code = codeOf(error)
  if (code === '53100') return 'its disk is full'
  // The statement was cancelled and all of its effects were undone.
  if (code === '57014') return 'the statement exceeded its time limit'
  return typeof code === 'string' && code.startsWith('53')
    ? 'it has no free memory or connection'
    : null
}

/** Returns whether an error is temporary, so that the same statement may succeed later. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error)
  return isConnectionError(error) || shortageOfDatabase(error) !== null || RETRIED.has(code)
}

/** The part of the driver's pool that is used. */
export interface ConnectionPool {
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: pg.PoolClient) => void): unknown
  connect(): Promise<pg.PoolClient>
  end(): Promise<void>
}

export interface DatabaseOptions {
  max?: number
  /** Replaces the driver's own pool, for a simulation of many processes in one. */
  pool?: (config: pg.PoolConfig) => ConnectionPool
  /** Whether a transaction pooler is in between, so that nothing may be stored in a session. */
  pooled?: boolean
  /**
   * Maximum wait for the result of a statement, in milliseconds; longer than the server's statement
   * timeout.
   */
  answerMs?: number
  /** Maximum wait for the result of a COMMIT, which waits for a standby without a limit. */
  commitMs?: number
  /** Maximum wait for a connection, in milliseconds. */
  connectMs?: number
  /** Maximum wait if the caller can retry, in milliseconds: see `Database.withShortTimeout`. */
  shortTimeoutMs?: number
  /** Returns the environment's time in milliseconds; absent: this machine's clock. */
  now?: () => number
  /** Called for errors that belong to no statement, with a sentence that describes the error. */
  onError?: (error: Error, what: string) => void
  /** Called after the commit of an event. Exceptions have no effect. */
  onEvent?: (event: EmittedEvent) => void
  /** Called after the commit of an audit-log entry. Exceptions have no effect. */
  onAudit?: (entry: EmittedAudit) => void
}

/**
 * Maximum number of prepared statements of a connection. It is larger than the number of the
 * platform's statements, and limits memory if a statement contains its values in its text.
 */
const PREPARED_MAX = 1000

/**
 * Returns names of prepared statements, so that a connection parses and plans each statement once:
 * planning is a third of PostgreSQL's work for small statements. A statement that is only executed
 * once gets no name.
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
 * Time in milliseconds after which an idle connection is closed. With a shorter time, two
 * concurrent tasks that run every ten seconds on an idle platform would open a new connection each
 * time.
 */
const POOL_IDLE_MS = 60_000
/**
 * Maximum wait for the result of a statement, in milliseconds: longer than the server's statement
 * timeout. If it is exceeded, the server does not respond, or the statement waits for a standby.
 */
const ANSWER_MS = 35_000
/**
 * Maximum wait for the result of a COMMIT, in milliseconds. A COMMIT itself takes little time, but
 * may wait for a standby without a limit.
 */
const COMMIT_MS = 10_000
/** Maximum wait for a connection, in milliseconds. */
const CONNECT_MS = 10_000
/**
 * Maximum wait if the caller can retry, in milliseconds: less than the ten seconds after which many
 * HTTP clients time out.
 */
const SHORT_TIMEOUT_MS = 8000
const WITHIN = { statement_timeout: STATEMENT_MS, idle_in_transaction_session_timeout: IDLE_MS }
/**
 * Statements that begin a transaction through a pooler. Other clients use the session afterwards,
 * so the settings must end with the transaction.
 */
const BEGIN_POOLED = [
  'begin',
  ...Object.entries(WITHIN).map(([name, ms]) => `set local ${name} = ${ms}`),
].join('; ')
/**
 * PostgreSQL function that a notice in any language names if the wait for a standby was aborted:
 * the data is committed on this server only.
 */
const STANDBY_WAIT = 'SyncRepWaitForLSN'

/**
 * Resolves with the result of the promise.
 * @throws ConnectionLost after `ms` milliseconds; the work itself continues
 */
export async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new ConnectionLost(new Error(`the database did not respond within ${ms} ms`))),
      ms,
    )
    // The timer must not keep the process alive: a connection does so by itself, and the wait for a
    // lost connection must not.
    timer.unref()
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** Returns an error without a code as `ConnectionLost` if the connection was lost. */
const asConnectionLost = (error: unknown, isLost: boolean): unknown =>
  isLost && codeOf(error) === undefined ? new ConnectionLost(error) : error

/**
 * Connections of a pool, and their state. A connection that is lost during a statement fails that
 * statement; the event itself must not end the process.
 */
class Connections {
  readonly #options: Required<
    Pick<DatabaseOptions, 'pooled' | 'answerMs' | 'commitMs' | 'connectMs' | 'shortTimeoutMs'>
  >
  readonly #pool: ConnectionPool
  /** Maximum wait of work that runs within `withShortTimeout`, in milliseconds. */
  readonly #waitLimit = new AsyncLocalStorage<number>()
  readonly #lost = new WeakSet<pg.PoolClient>()
  /** Connections whose last commit no standby has confirmed. */
  readonly #unconfirmed = new WeakSet<pg.PoolClient>()
  /** Connections that were opened after another one reached a read-only server. */
  #fresh = new WeakSet<pg.PoolClient>()
  readonly #nameOf: (text: string) => string | undefined

  constructor(url: string, options: DatabaseOptions) {
    const {
      pooled = false,
      answerMs = ANSWER_MS,
      commitMs = COMMIT_MS,
      connectMs = CONNECT_MS,
      shortTimeoutMs = SHORT_TIMEOUT_MS,
    } = options
    this.#options = { pooled, answerMs, commitMs, connectMs, shortTimeoutMs }
    const poolOf = options.pool ?? ((config: pg.PoolConfig): ConnectionPool => new pg.Pool(config))
    this.#pool = poolOf({
      connectionString: url,
      max: options.max ?? 24,
      connectionTimeoutMillis: connectMs,
      idleTimeoutMillis: POOL_IDLE_MS,
      keepAlive: true,
      application_name: 'custody',
      ...(pooled ? {} : WITHIN),
    })
    this.#pool.on('error', (error) => options.onError?.(error, 'a database connection was lost'))
    this.#pool.on('connect', (client) => {
      this.#fresh.add(client)
      client.on('error', () => this.#lost.add(client))
      client.on('notice', ({ routine }) => {
        if (routine === STANDBY_WAIT) this.#unconfirmed.add(client)
      })
    })
    this.#nameOf = pooled ? () => undefined : statementNames()
  }

  get shortTimeoutMs(): number {
    return this.#options.shortTimeoutMs
  }

  /** Runs work whose waits are limited to `shortTimeoutMs`. */
  withShortTimeout<T>(work: () => Promise<T>): Promise<T> {
    return this.#waitLimit.run(this.shortTimeoutMs, work)
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  /**
   * Returns a free connection.
   * @throws ConnectionLost if none is available in time
   */
  async connect(): Promise<pg.PoolClient> {
    const ms = this.#waitLimit.getStore()
    for (;;) {
      const connecting = this.#pool.connect()
      const client = await (ms === undefined ? connecting : within(connecting, ms)).catch(
        (error: unknown) => {
          // A connection that is established later is given to the next caller.
          connecting.then(
            (late) => late.release(),
            () => undefined,
          )
          throw asConnectionLost(error, true)
        },
      )
      if (this.#fresh.has(client)) return client
      client.release(true)
    }
  }

  /**
   * Runs a statement.
   * @param ms maximum wait for the result, in milliseconds
   * @throws ConnectionLost, CommitUnknown, or the server's error
   */
  async rows(
    client: pg.PoolClient,
    text: string,
    values?: readonly unknown[],
    ms = this.#options.answerMs,
  ): Promise<unknown[]> {
    try {
      const name = values && this.#nameOf(text)
      const most = Math.min(ms, this.#waitLimit.getStore() ?? ms)
      const { rows } = await within(
        client.query({ ...(name ? { name } : {}), text, values: [...(values ?? [])] }),
        most,
      )
      if (this.#unconfirmed.has(client))
        throw new CommitUnknown(new Error('no standby has confirmed the commit'))
      return rows
    } catch (error) {
      // The connection is discarded, because its next user must not receive the result of this
      // statement.
      if (isConnectionError(error)) this.#lost.add(client)
      if (codeOf(error) === READ_ONLY) this.#fresh = new WeakSet()
      throw asConnectionLost(error, this.#lost.has(client))
    }
  }

  /** Runs one statement on a connection of its own, and repeats it after a serialization failure. */
  single(text: string, values?: readonly unknown[]): Promise<unknown[]> {
    return retried(async () => {
      const since = performance.now()
      const client = await this.connect()
      try {
        // The time spent waiting for a connection is deducted from the limit.
        const left =
          this.#waitLimit.getStore() === undefined
            ? this.#options.answerMs
            : Math.max(1, Math.round(this.shortTimeoutMs - (performance.now() - since)))
        return await this.rows(client, text, values, left)
      } finally {
        client.release(this.#lost.has(client))
      }
    })
  }

  /** Runs `work` between BEGIN and COMMIT on one connection, and rolls back if it fails. */
  async transaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.connect()
    let broken = false
    try {
      await this.rows(client, this.#options.pooled ? BEGIN_POOLED : 'begin')
      const result = await work(client)
      await this.#commit(client)
      return result
    } catch (error) {
      broken = this.#lost.has(client)
      if (!broken) await this.rows(client, 'rollback').catch(() => (broken = true))
      throw error
    } finally {
      client.release(broken)
    }
  }

  /**
   * Commits the transaction of a connection.
   * @throws CommitUnknown if the connection is lost
   */
  async #commit(client: pg.PoolClient): Promise<void> {
    try {
      await this.rows(client, 'commit', undefined, this.#options.commitMs)
    } catch (error) {
      throw isConnectionError(error) ? new CommitUnknown(error) : error
    }
  }
}

/**
 * Opens a pool. Connections that the server closes are replaced at the next query. If a connection
 * turns out to lead to a read-only server, all open connections are replaced.
 */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const now = () => new Date((options.now ?? Date.now)())
  const connections = new Connections(url, options)
  const notify = (listener: () => void): void => {
    try {
      listener()
    } catch (error) {
      options.onError?.(
        error as Error,
        'an event was committed, but its listeners could not be notified',
      )
    }
  }
  /**
   * Returns the interface for queries.
   * @param committed calls a listener after the commit
   */
  const queryable = (
    rows: (text: string, values?: readonly unknown[]) => Promise<unknown[]>,
    committed: (listener: () => void) => void,
  ): Queryable => {
    const query = async <T>(text: string, values?: readonly unknown[]) =>
      (await rows(text, values)) as T[]
    return {
      query,
      one: async <T>(text: string, values?: readonly unknown[]) =>
        (await query<T>(text, values))[0],
      now,
      emit: (event) => committed(() => options.onEvent?.(event)),
      emitAudit: (entry) => committed(() => options.onAudit?.(entry)),
    }
  }
  return {
    ...queryable((text, values) => connections.single(text, values), notify),
    async transaction(work) {
      const { result, listeners } = await retried(async () => {
        const listeners: (() => void)[] = []
        const result = await connections.transaction((client) =>
          work(
            queryable(
              (text, values) => connections.rows(client, text, values),
              (listener) => listeners.push(listener),
            ),
          ),
        )
        return { result, listeners }
      })
      listeners.forEach(notify)
      return result
    },
    withShortTimeout: (work) => connections.withShortTimeout(work),
    shortTimeoutMs: connections.shortTimeoutMs,
    close: () => connections.close(),
  }
}
