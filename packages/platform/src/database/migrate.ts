import { readdirSync, readFileSync } from 'node:fs'
import type { Database } from './pool.ts'

const LOCK = 7_205_160_001

/** Applies the numbered files of ./migrations that were not applied yet, each once, under an advisory lock. */
export async function migrate(database: Database): Promise<string[]> {
  return database.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCK])
    await tx.query('create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())')
    const known = new Set((await tx.query<{ name: string }>('select name from migrations')).map((row) => row.name))
    const folder = new URL('./migrations/', import.meta.url)
    const applied: string[] = []
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.sql')).sort()) {
      if (known.has(name)) continue
      await tx.query(readFileSync(new URL(name, folder), 'utf8'))
      await tx.query('insert into migrations (name) values ($1)', [name])
      applied.push(name)
    }
    return applied
  })
}
