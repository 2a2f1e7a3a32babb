import pg from 'pg'

export type Row = Record<string, unknown>

/** What queries run on: the pool, or one connection inside a transaction. */
export interface Queryable {
  /** All rows of a statement. Parameters are $1, $2, …; bigint and numeric come back as strings. */
  query<T = Row>(text: string, values?: readonly unknown[]): Promise<T[]>
  /** First row, or undefined. */
  one<T = Row>(text: string, values?: readonly unknown[]): Promise<T | undefined>
  /** The time of the Environment, for statements: SQL names no clock of its own where a deadline, a lease or a window depends on it. */
  now(): Date
  /** Told to the pool's `onEvent` once what was done here is committed; never where it was not. */
  tell(event: ToldEvent): void
}

/** An event of the outbox. `payload` is its JSON text. */
export interface ToldEvent { type: string; workspace: string; payload: string }

export interface Database extends Queryable {
  /** Runs `work` in one transaction; serialization failures and deadlocks are tried again up to 5 times. */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  close(): Promise<void>
}

function queryable(client: pg.Pool | pg.PoolClient, now: () => Date, tell: (event: ToldEvent) => void): Queryable {
  const query = async <T>(text: string, values: readonly unknown[] = []) => (await client.query(text, values as unknown[])).rows as T[]
  return { query, one: async <T>(text: string, values?: readonly unknown[]) => (await query<T>(text, values))[0], now, tell }
}

const RETRIED = new Set(['40001', '40P01'])

/** True for errors of a connection that was lost or refused: the statement may or may not have been done. */
export function isConnectionError(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code === 'string' && (/^(08|57P0)/.test(code) || ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT'].includes(code))) return true
  return error instanceof Error && /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|connection timeout/i.test(error.message)
}

export interface DatabaseOptions {
  max?: number
  /** The Environment's clock, in milliseconds; without it that of this machine. */
  now?: () => number
  /** What went wrong beside every statement, with a sentence that says what it was. */
  onError?: (error: Error, what: string) => void
  /** What it throws changes nothing: the event is committed. */
  onEvent?: (event: ToldEvent) => void
}

/** Opens a pool. Connections that the server closes are replaced by the next query. */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const now = () => new Date((options.now ?? Date.now)())
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max ?? 24,
    connectionTimeoutMillis: 10_000,
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: 60_000,
    application_name: 'custody',
  })
  pool.on('error', (error) => options.onError?.(error, 'a database connection was lost'))
  // A connection that is lost while a statement waits fails that statement; the event itself must not end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const tell = (event: ToldEvent): void => {
    try {
      options.onEvent?.(event)
    } catch (error) {
      options.onError?.(error as Error, 'an event was committed and could not be told')
    }
  }
  return {
    ...queryable(pool, now, tell),
    async transaction(work) {
      for (let attempt = 1; ; attempt++) {
        const client = await pool.connect()
        let broken = false
        const told: ToldEvent[] = []
        let result: Awaited<ReturnType<typeof work>>
        try {
          await client.query('begin')
          result = await work(queryable(client, now, (event) => told.push(event)))
          await client.query('commit')
        } catch (error) {
          broken = isConnectionError(error)
          if (!broken) await client.query('rollback').catch(() => (broken = true))
          if (attempt < 5 && RETRIED.has(String((error as { code?: string }).code))) continue
          throw error
        } finally {
          client.release(broken)
        }
        told.forEach(tell)
        return result
      }
    },
    close: () => pool.end(),
  }
}
