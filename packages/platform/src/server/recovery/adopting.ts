import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import { NotAdopted } from './open.ts'

interface Services {
  environment: Environment
  database: Database
}

/**
 * Duration of the mark that records are being adopted, in milliseconds. It is renewed well before
 * it ends; if the process dies, the others wait no longer than this.
 */
const MARK_MS = 60_000
const RENEW_MS = 15_000

/**
 * Whether this or another process is adopting the signer nodes' records. No other process works
 * with a partially adopted database.
 */
export async function isAdoptedSomewhere({
  database,
}: Pick<Services, 'database'>): Promise<boolean> {
  return (
    (await database.one('select 1 from installation where adopting_until > $1', [
      database.now(),
    ])) !== undefined
  )
}

/**
 * Runs a function while the processes on all hosts hold the database.
 * @throws NotAdopted if another process is already adopting records
 */
export async function whileAdopting<T>(
  { database, environment }: Services,
  work: () => Promise<T>,
): Promise<T> {
  const until = () => new Date(environment.now() + MARK_MS)
  const marked = await database.query(
    `update installation set adopting_until = $1 where adopting_until is null
      or adopting_until <= $2 returning 1`,
    [until(), database.now()],
  )
  // A database on which no platform was started has no such row and no other process.
  if (marked.length === 0 && (await database.one('select 1 from installation'))) {
    throw new NotAdopted('another host is already adopting the records of the signer nodes')
  }
  const ended = new AbortController()
  const renewed = (async () => {
    for (;;) {
      await environment.sleep(RENEW_MS, ended.signal)
      if (ended.signal.aborted) return
      await database
        .query('update installation set adopting_until = $1', [until()])
        .catch(() => undefined)
    }
  })()
  try {
    return await work()
  } finally {
    ended.abort()
    await renewed
    await database.query('update installation set adopting_until = null')
  }
}
