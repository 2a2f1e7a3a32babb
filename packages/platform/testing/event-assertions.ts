import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventType } from '../src/core/database/event-types.ts'
import type { Database } from '../src/core/database/pool.ts'
import { EVENTS } from '../src/events/events/registry.ts'

/**
 * Returns the events of a database whose payload does not match the registry of events, each with
 * its errors. Returns an empty list if the database is unreachable.
 */
export async function wrongEvents(database: Database, from = new Date(0)): Promise<string[]> {
  const rows = await database
    .query<{ type: EventType; payload: unknown; sub_account_id: string | null; owned: boolean }>(
      `select e.type, e.payload, e.sub_account_id, t.sub_account_id is not null owned
     from events e left join transactions t on t.id::text = e.payload->>'id'
     where e.created_at >= $1 order by e.id`,
      [from],
    )
    .catch(() => [])
  return rows.flatMap(({ type, payload, sub_account_id, owned }) => {
    const { data, scope } = EVENTS[type]
    const read = data.safeParse(payload)
    const isScoped =
      (sub_account_id !== null) === (scope === 'owner' ? owned : scope === 'sub-account')
    return [
      ...(read.success
        ? []
        : [
            `${type}: ${read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')}`,
          ]),
      ...(isScoped
        ? []
        : [
            `${type}: is told to ${sub_account_id === null ? 'the whole workspace' : 'a sub-account'}`,
          ]),
    ]
  })
}

/**
 * Adds the last test of a file: it checks that all emitted events match the registry and that the
 * listed types were emitted.
 */
export function testEmittedEvents(database: () => Database, types: readonly EventType[]): void {
  test(`emitted events match the registry, and every listed type was emitted: ${types.join(', ')}`, async () => {
    assert.deepEqual(await wrongEvents(database()), [])
    const emitted = new Set(
      (await database().query<{ type: EventType }>('select distinct type from events')).map(
        ({ type }) => type,
      ),
    )
    assert.deepEqual(
      types.filter((type) => !emitted.has(type)),
      [],
      `told were ${[...emitted].join(', ')}`,
    )
  })
}
