import type { Services } from '../engine/services.ts'
import { NotAdopted } from './open.ts'

/**
 * Said again well before; a process that dies while it adopts keeps the others waiting for no
 * longer.
 */
const MARK_MS = 60_000
const RENEW_MS = 15_000

/**
 * Whether a process, this one or another, is adopting what the nodes recorded: no other works on a
 * database that is half of it.
 */
export async function isAdoptedSomewhere({ database }: Services): Promise<boolean> {
  return (
    (await database.one('select 1 from installation where adopting_until > $1', [
      database.now(),
    ])) !== undefined
  )
}

/**
 * Runs something while the processes of all hosts hold the database.
 * @throws NotAdopted where another process does the same already
 */
export async function whileAdopting<T>(
  { database, environment }: Services,
  work: () => Promise<T>,
): Promise<T> {
  const until = () => new Date(environment.now() + MARK_MS)
  const marked = await database.query(
    'update installation set adopting_until = $1 where adopting_until is null or adopting_until <= $2 returning 1',
    [until(), database.now()],
  )
  // A database that no platform was started on has no row, and nobody else.
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
