import { openDatabase, type Database } from './pool.ts'
import { API_ROLE, SCANNER_ROLE } from './table-rights.ts'

/**
 * Superuser of the embedded server, which `initdb` creates. It makes the other roles and takes
 * backups. The platform's processes never connect as it.
 */
export const SUPERUSER = 'custody'
/** Role that owns the database and its tables, and applies the migrations. */
export const OWNER = 'custody_owner'
/** Role of the platform's processes that have no role of their own; see {@link ./table-rights.ts}. */
export const APP = 'custody_app'
const ROLES = [OWNER, APP, API_ROLE, SCANNER_ROLE]
const DATABASE = 'custody'

const ROLE_OPTIONS = 'login nosuperuser nocreatedb nocreaterole noinherit noreplication nobypassrls'

/**
 * Gives the tables and functions of the database to {@link OWNER}. In the data of earlier versions
 * the superuser owns them. A sequence follows the table to which it belongs.
 */
const TAKE_OVER = `do $$
declare
  each record;
begin
  for each in select c.oid::regclass::text "name" from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and c.relowner <> '${OWNER}'::regrole
  loop
    execute format('alter table %s owner to ${OWNER}', each.name);
  end loop;
  for each in select p.oid::regprocedure::text "name" from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proowner <> '${OWNER}'::regrole
  loop
    execute format('alter function %s owner to ${OWNER}', each.name);
  end loop;
end $$`

/** Returns the URL of the embedded database for a process that only serves the API, or only scans. */
export const urlForRole = (url: string, role: 'all' | 'api' | 'worker' | 'scanner'): string =>
  url.replace(
    `://${APP}@`,
    `://${role === 'api' ? API_ROLE : role === 'scanner' ? SCANNER_ROLE : APP}@`,
  )

async function withDatabase(url: string, run: (database: Database) => Promise<void>) {
  const database = openDatabase(url, { max: 1, onError: () => undefined })
  try {
    await run(database)
  } finally {
    await database.close()
  }
}

/**
 * Creates the roles and the platform's database on the embedded server, as far as they do not exist,
 * and makes {@link OWNER} the owner of everything in the database.
 * @param urlOf returns the URL of a database for the superuser
 */
export async function prepareRoles(urlOf: (database: string) => string): Promise<void> {
  await withDatabase(urlOf('postgres'), async (admin) => {
    const roles = await admin.query<{ name: string }>(
      'select rolname::text "name" from pg_roles where rolname = any($1)',
      [ROLES],
    )
    for (const role of ROLES)
      if (!roles.some(({ name }) => name === role))
        await admin.query(`create role ${role} ${ROLE_OPTIONS}`)
    const match = await admin.one<{ owner: string }>(
      'select pg_get_userbyid(datdba)::text "owner" from pg_database where datname = $1',
      [DATABASE],
    )
    if (!match) await admin.query(`create database ${DATABASE} owner ${OWNER}`)
    else if (match.owner !== OWNER)
      await admin.query(`alter database ${DATABASE} owner to ${OWNER}`)
  })
  await withDatabase(urlOf(DATABASE), async (admin) => {
    await admin.query(TAKE_OVER)
  })
}
