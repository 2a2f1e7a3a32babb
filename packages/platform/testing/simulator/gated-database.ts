import type { Database, Queryable } from '../../src/core/database/pool.ts'
import { digestOf } from './digest.ts'
import type { Actor, Schedule } from './schedule.ts'

/** Thrown if a process of the platform ends within a transaction. */
class Ended extends Error {}

/** How a process ends at a commit: before the commit is sent, or before its result is received. */
export type LastCommit = 'unsent' | 'unheard'

const heads = new Map<string, string>()

/** Returns the beginning of a statement. */
function headOf(text: string): string {
  let head = heads.get(text)
  if (head === undefined) heads.set(text, (head = text.replace(/\s+/g, ' ').slice(0, 60)))
  return head
}

/**
 * Returns a database for which each statement, each begin and each commit is a separate operation
 * of the schedule. If the process is about to die at the next commit, `dying` returns how.
 */
export function gatedDatabase(
  database: Database,
  actor: Actor,
  schedule: Schedule,
  dying: () => LastCommit | null,
): Database {
  const short = (text: string, values: readonly unknown[] = []) =>
    `${headOf(text)} ${digest(text.includes('::xid8') ? unnumbered(values) : values)}`
  const query = <T>(text: string, values?: readonly unknown[]) =>
    schedule.pauseAt(actor, short(text, values), () => database.query<T>(text, values))
  return {
    ...database,
    query,
    one: async (text, values) => (await query(text, values))[0] as never,
    async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
      // The driver runs `body` again if the database requires a retry; the schedule waits for each
      // begin and each end.
      let begun = Promise.withResolvers<void>()
      let whole: Promise<T> = Promise.reject(new Error('not begun'))
      whole.catch(() => undefined)
      const ended = () =>
        Promise.race([
          whole.then(
            () => undefined,
            () => undefined,
          ),
          begun.promise,
        ])
      const body = async (tx: Queryable): Promise<T> => {
        begun.resolve()
        begun = Promise.withResolvers<void>()
        const inner = <R>(text: string, values?: readonly unknown[]) =>
          schedule.pauseAt(actor, `  ${short(text, values)}`, () => tx.query<R>(text, values))
        let end: { value: T } | { error: unknown }
        try {
          end = {
            value: await orDead(
              actor,
              work({
                ...tx,
                query: inner,
                one: async (text, values) => (await inner(text, values))[0] as never,
              }),
            ),
          }
        } catch (error) {
          if (error instanceof Ended) throw error
          end = { error }
        }
        const finish = Promise.withResolvers<void>()
        void schedule.pauseAt(actor, 'value' in end ? '  commit' : '  rollback', async () => {
          if ('value' in end && dying() === 'unsent') {
            actor.die()
            finish.reject(new Ended())
          } else finish.resolve()
          await ended()
          if ('value' in end && dying() === 'unheard') actor.die()
        })
        await orDead(actor, finish.promise)
        if ('error' in end) throw end.error
        return end.value
      }
      const outcome = Promise.withResolvers<T>()
      void schedule.pauseAt(actor, 'begin', async () => {
        whole = database.transaction(body)
        whole.then(outcome.resolve, outcome.reject)
        await ended()
      })
      const value = await outcome.promise
      if (actor.isDead) return new Promise(() => undefined)
      return value
    },
  }
}

/**
 * Removes PostgreSQL's transaction numbers, which continue from seed to seed, so they must not
 * affect a run.
 */
const unnumbered = (values: readonly unknown[]) =>
  values.filter((value) => typeof value !== 'string' || !/^\d+$/.test(value))

/**
 * Returns a digest that distinguishes statements with the same name, so that their order does not
 * depend on this process.
 */
export const digest = (values: readonly unknown[]): string =>
  digestOf(values.length === 0 ? '' : textOf(values)).slice(0, 6)

function textOf(values: readonly unknown[]): string {
  try {
    return JSON.stringify(values)
  } catch {
    // The values contain a bigint, which is rare. The replacer is slow, so it is used only here.
    return JSON.stringify(values, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    )
  }
}

/** Drops the results of operations of dead processes; their connections still end. */
const orDead = <T>(actor: Actor, work: Promise<T>): Promise<T> =>
  Promise.race([
    work,
    actor.death.then(() => {
      throw new Ended()
    }),
  ])
