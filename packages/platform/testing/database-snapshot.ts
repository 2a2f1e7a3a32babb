import type { Database } from '../src/core/database/pool.ts'
import { adminOf } from './test-database.ts'

/**
 * Keeps the rows of all tables, as a backup does.
 * @returns a function that restores them
 */
export async function takeSnapshot(of: Database): Promise<() => Promise<void>> {
  const database = adminOf(of)
  const tables = await database.query<{ name: string; columns: string }>(
    `select c.relname name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
       and not a.attisdropped and a.attgenerated = ''
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by c.relname`,
  )
  const rows = new Map<string, string>()
  for (const { name } of tables) {
    const row = await database.one<{ rows: string }>(
      `select coalesce(json_agg(t), '[]')::text rows from ${name} t`,
    )
    rows.set(name, row?.rows ?? '[]')
  }
  return () =>
    database.transaction(async (tx) => {
      await tx.query('set local session_replication_role = replica')
      for (const { name } of tables) await tx.query(`delete from ${name}`)
      for (const { name, columns } of tables)
        await tx.query(
          `insert into ${name} (${columns}) overriding system value
           select ${columns} from json_populate_recordset(null::${name}, $1::json)`,
          [rows.get(name)],
        )
    })
}
