import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { Queryable } from './pool.ts'

const FOLDER = new URL('./functions/', import.meta.url)

/**
 * Drops the functions with this name, with any parameters. A function that a trigger uses is kept
 * as long as its file exists: its signature never changes, so it can be replaced in place.
 */
async function drop(tx: Queryable, name: string, triggersToo: boolean): Promise<void> {
  const heads = await tx.query<{ head: string }>(
    `select p.oid::regprocedure::text head from pg_proc p
     where p.pronamespace = current_schema()::regnamespace and p.proname = $1
       and ($2 or p.prorettype <> 'trigger'::regtype)`,
    [name, triggersToo],
  )
  for (const { head } of heads) await tx.query(`drop function ${head}`)
}

interface FunctionFile {
  name: string
  text: string
  hash: string
}

const filesOf = (folder: URL): FunctionFile[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file) => {
      const text = readFileSync(new URL(file, folder), 'utf8')
      const hash = createHash('sha256').update(text).digest('hex')
      return { name: basename(file, '.sql'), text, hash }
    })

/** Returns the hashes of the applied functions, by name. */
const appliedIn = async (tx: Queryable): Promise<Map<string, string>> =>
  new Map(
    (
      await tx.query<{ name: string; hash: string }>(
        'select name, hash from database_functions order by name',
      )
    ).map(({ name, hash }) => [name, hash]),
  )

/** Returns whether {@link applyFunctions} would change nothing. Reads only. */
export async function hasFunctions(tx: Queryable, folder: URL = FOLDER): Promise<boolean> {
  const table = await tx.one<{ there: string | null }>(
    `select to_regclass('database_functions')::text there`,
  )
  if (!table?.there) return false
  const existing = await appliedIn(tx)
  const files = filesOf(folder)
  return (
    files.length === existing.size && files.every(({ name, hash }) => existing.get(name) === hash)
  )
}

/**
 * Updates the database's functions to the files in ./functions. Each file contains the definition
 * of the function that it is named after, and is applied again when its text has changed, in the
 * order of the names; a function without a file is dropped. Must be called after the migrations, in
 * the same transaction, so that no migration can use a function.
 * @returns the names of the functions that were applied or dropped
 */
export async function applyFunctions(tx: Queryable, folder: URL = FOLDER): Promise<string[]> {
  await tx.query(
    `create table if not exists database_functions (
       name text primary key, hash text not null, applied_at timestamptz not null default now())`,
  )
  const existing = await appliedIn(tx)
  const files = filesOf(folder)
  const names = files.map(({ name }) => name)
  const changed: string[] = []
  for (const name of [...existing.keys()].filter((each) => !names.includes(each))) {
    await drop(tx, name, true)
    await tx.query('delete from database_functions where name = $1', [name])
    changed.push(name)
  }
  for (const { name, text, hash } of files) {
    if (existing.get(name) === hash) continue
    // The old function is dropped first: if its parameters differ, it would remain next to the new
    // one of the same name.
    await drop(tx, name, false)
    await tx.query(text)
    await tx.query(
      `insert into database_functions (name, hash, applied_at) values ($1, $2, $3)
       on conflict (name) do update set hash = excluded.hash, applied_at = excluded.applied_at`,
      [name, hash, tx.now()],
    )
    changed.push(name)
  }
  return changed
}
