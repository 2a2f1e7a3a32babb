import type { Queryable } from '../../core/database/pool.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns the name of the person who owns each API key, or the key's label; by key. Only processes of
 * the API may read them, so events contain no names.
 */
export async function requesterNames(
  database: Queryable,
  keys: readonly (string | null)[],
): Promise<ReadonlyMap<string, string>> {
  const known = [...new Set(keys)].filter((key) => key !== null && UUID.test(key))
  if (known.length === 0) return new Map()
  const rows = await database.query<{ api_key: string; name: string | null }>(
    `select u.api_key, coalesce(p.name, u.label) name from api_users u
       left join people p on p.id = u.person_id where u.api_key = any($1)`,
    [known],
  )
  return new Map(rows.flatMap(({ api_key, name }) => (name === null ? [] : [[api_key, name]])))
}
