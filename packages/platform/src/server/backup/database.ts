import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import {
  embeddedData,
  embeddedVersion,
  startEmbeddedPostgres,
  takeEmbeddedData,
} from '../../core/database/embedded.ts'
import { writeEmbeddedSettings } from '../../core/database/embedded-settings.ts'
import { openDatabase } from '../../core/database/pool.ts'
import { copyVerified } from './folder.ts'
import { databaseFiles, entryOf, type Manifest } from './manifest.ts'
import { checkLabel } from './names.ts'

type Taken = Manifest['database'] & { folders: string[] }

/**
 * Folders whose content PostgreSQL creates again, according to its manual ("Making a Base Backup
 * Using the Low Level API").
 */
const MADE_ANEW = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat',
  'pg_stat_tmp',
  'pg_subtrans',
])
/**
 * Other files that are not copied: settings, which a restore writes itself, logs, temporary tables,
 * and files that are about to be renamed.
 */
const NOT_COPIED = new RegExp(
  `^(?:${[
    'postmaster\\.(?:pid|opts)',
    'postmaster\\.pid\\.custody',
    'pg_internal\\.init.*',
    'pgsql_tmp.*',
    'backup_label(?:\\.old)?',
    'tablespace_map(?:\\.old)?',
    '(?:recovery|standby)\\.signal',
    'postgresql\\.(?:auto\\.)?conf',
    'pg_(?:hba|ident)\\.conf',
    'current_logfiles',
    'log',
    't\\d+_\\d+(?:_.*)?(?:\\..*)?',
    '.*\\.tmp',
  ].join('|')})$`,
)

/**
 * Copies a folder of the database with its subfolders. A file that the running server deletes
 * during the copy is skipped; the WAL contains the deletion.
 */
async function copyTree(from: string, to: string, path: string, folders: string[]): Promise<void> {
  mkdirSync(join(to, path), { mode: 0o700 })
  const entries = readdirSync(join(from, path), { withFileTypes: true }).filter(
    ({ name }) => !NOT_COPIED.test(name),
  )
  const isEmptied = MADE_ANEW.has(path)
  if (isEmptied || entries.length === 0) folders.push(path)
  for (const entry of isEmptied ? [] : entries) {
    const name = path === '' ? entry.name : `${path}/${entry.name}`
    if (entry.isDirectory()) await copyTree(from, to, name, folders)
    else if (entry.isSymbolicLink())
      throw new Error(`the database has a tablespace at ${name}; back it up with pgBackRest`)
    else {
      try {
        await copyFile(join(from, name), join(to, name))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
        throw error
      }
      chmodSync(join(to, name), 0o600)
    }
  }
}

const migrationsOf = async (client: pg.Client): Promise<string[]> =>
  (await client.query<{ name: string }>('select name from migrations order by name')).rows.map(
    ({ name }) => name,
  )

/**
 * Copies the embedded server's files while it runs; if it does not run, it is started for the copy.
 * The distribution has no pg_dump. A replication slot retains the WAL that makes the copy
 * consistent until it is copied too.
 */
export async function takeEmbedded(
  home: string,
  to: string,
  walArchive: string | null,
  report: (line: string) => void,
): Promise<Taken> {
  const data = embeddedData(home)
  if (!statSync(join(data, 'PG_VERSION'), { throwIfNoEntry: false }))
    throw new Error(`${home} contains no database`)
  const server = await startEmbeddedPostgres(home, undefined, { walArchive })
  const client = new pg.Client({
    connectionString: server.adminUrl,
    application_name: 'custody backup',
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    const migrations = await migrationsOf(client)
    const slot = `custody_backup_${process.pid}`
    await client.query('select pg_create_physical_replication_slot($1, true, true)', [slot])
    const begun = (
      await client.query<{ file: string }>(
        `select pg_walfile_name(pg_backup_start('custody', true)) as file`,
      )
    ).rows[0]
    const archiver = (
      await client.query<{ failing: boolean }>(
        `select failed_count > 0 and (last_archived_time is null
          or last_failed_time > last_archived_time) as failing
       from pg_stat_archiver`,
      )
    ).rows[0]
    if (walArchive !== null && archiver?.failing) {
      report(
        `WARNING: the write-ahead log is not archived to ${walArchive}: see ${join(home, 'postgres.log')}`,
      )
    }
    const folders: string[] = []
    await copyTree(data, to, '', folders)
    const done = (
      await client.query<{ lsn: string; labelfile: string; spcmapfile: string; last: string }>(
        `select lsn::text, labelfile, spcmapfile, pg_walfile_name(lsn) as last
          from pg_backup_stop(false)`,
      )
    ).rows[0]
    if (!begun || !done) throw new Error('PostgreSQL did not report the location of its log')
    writeFileSync(join(to, 'backup_label'), done.labelfile, { mode: 0o600 })
    for (const name of readdirSync(join(data, 'pg_wal')).sort()) {
      const isPiece = /^[0-9A-F]{24}$/.test(name) && name >= begun.file && name <= done.last
      if (!isPiece && !name.endsWith('.history')) continue
      await copyFile(join(data, 'pg_wal', name), join(to, 'pg_wal', name))
      chmodSync(join(to, 'pg_wal', name), 0o600)
    }
    for (const folder of ['pg_wal/archive_status', 'pg_wal/summaries']) {
      if (statSync(join(data, folder), { throwIfNoEntry: false })) folders.push(folder)
    }
    return {
      form: 'files',
      postgres: embeddedVersion(),
      made_with: 'pg_backup_start, a copy of the files and their log, pg_backup_stop',
      migrations,
      wal_end: done.lsn,
      folders,
    }
  } finally {
    await client.end().catch(() => undefined)
    if (!server.adopted) await server.stop()
  }
}

function program(name: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(name, args, { encoding: 'utf8' })
  if (error)
    throw new Error(
      `${name} was not found: install PostgreSQL's client programs (Debian: postgresql-client)`,
    )
  // The program's messages contain host and database, but no password.
  if (status !== 0) throw new Error(`${name} failed: ${stderr.trim().slice(-800)}`)
  return stdout
}

/**
 * Moves the password to the environment, because other users of this machine can read a process's
 * arguments.
 */
function withoutPassword(url: string): { url: string; env: Record<string, string> } {
  const [, before, password, after] =
    /^(postgres(?:ql)?:\/\/[^:@/?]*):([^@/?]*)(@.*)$/s.exec(url) ?? []
  return password === undefined
    ? { url, env: {} }
    : { url: `${before}${after}`, env: { PGPASSWORD: decodeURIComponent(password) } }
}

function withEnvironment<T>(env: Record<string, string>, run: () => T): T {
  const before = { ...process.env }
  Object.assign(process.env, env)
  try {
    return run()
  } finally {
    for (const name of Object.keys(env)) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  }
}

/** Backs up the operator's own database: pg_dump's custom format, one snapshot. */
export async function takeExternal(databaseUrl: string, to: string): Promise<Taken> {
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => undefined)
  await client.connect()
  let migrations: string[]
  let postgres: number
  try {
    migrations = await migrationsOf(client)
    const said = (await client.query<{ server_version_num: string }>('show server_version_num'))
      .rows[0]
    postgres = Math.floor(Number(said?.server_version_num) / 10_000)
  } finally {
    await client.end()
  }
  mkdirSync(to, { mode: 0o700 })
  const made = program('pg_dump', ['--version']).trim()
  const { url, env } = withoutPassword(databaseUrl)
  withEnvironment(env, () =>
    program('pg_dump', [
      '--format=custom',
      '--no-owner',
      '--no-privileges',
      `--file=${join(to, 'dump')}`,
      url,
    ]),
  )
  chmodSync(join(to, 'dump'), 0o600)
  return { form: 'dump', postgres, made_with: made, migrations, wal_end: null, folders: [] }
}

/** Maximum time in milliseconds for the replay of an archived WAL: one day. */
const RECOVERY_MS = 24 * 3600_000

/**
 * How the restored database recovers. `archive`: folder to which it archives its WAL. Existing
 * files in it are not read and not overwritten.
 */
export interface Recovery {
  wal: string | null
  until: string | null
  archive: string | null
}

/**
 * Returns the lines of `postgresql.auto.conf` with which the server replays the WAL of the copy and
 * then that of `wal`.
 */
function recoverySettings({ wal, until, archive }: Recovery): string[] {
  const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
  const from = (folder: string): string => `'${folder.replaceAll('%', '%%')}'/%f`
  // The restored server always starts a new timeline, so that its WAL files do not have the names
  // of files that the lost server has archived.
  const target =
    wal === null
      ? ["recovery_target = 'immediate'", "recovery_target_timeline = 'current'"]
      : until === null
        ? []
        : [
            `recovery_target_time = ${quoted(new Date(until).toISOString().replace('T', ' ').replace('Z', '+00'))}`,
          ]
  // Without --wal only timeline history files are looked up, because the WAL of the backup is in
  // the copy.
  const command =
    wal !== null
      ? `cp ${from(wal)} "%p"`
      : archive !== null
        ? `case "%f" in *.history) cp ${from(archive)} "%p";; *) exit 1;; esac`
        : 'false'
  return [
    'hot_standby = off',
    "recovery_target_action = 'promote'",
    ...target,
    `restore_command = ${quoted(command)}`,
  ]
}

/**
 * Copies the files of a backup into an empty data folder, and makes the server replay its WAL: that
 * of the copy, and then that in `wal`, to its end or to a given time. Settings and signal files are
 * written here and never copied. The server is stopped afterwards.
 * @throws Error
 */
export async function placeEmbedded(
  home: string,
  from: string,
  manifest: Manifest,
  recovery: Recovery,
): Promise<void> {
  const data = embeddedData(home)
  mkdirSync(data, { recursive: true, mode: 0o700 })
  for (const folder of manifest.folders)
    mkdirSync(join(data, folder), { recursive: true, mode: 0o700 })
  for (const file of databaseFiles(manifest)) {
    const to = join(data, file.path.slice('database/'.length))
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    await copyVerified(from, file, to)
  }
  checkLabel(readFileSync(join(data, 'backup_label'), 'utf8'))
  writeEmbeddedSettings(data, recoverySettings(recovery))
  writeFileSync(join(data, 'recovery.signal'), '', { mode: 0o600, flag: 'wx' })
  takeEmbeddedData(home)
  const server = await startEmbeddedPostgres(home, undefined, {
    startTimeoutMs: RECOVERY_MS,
    launchesMax: 1,
  })
  const database = openDatabase(server.adminUrl, { max: 1 })
  try {
    while (
      (await database.one<{ recovering: boolean }>('select pg_is_in_recovery() as recovering'))
        ?.recovering !== false
    )
      await sleep(200)
    await database.one('select count(*) from migrations')
    const spaces = await database.query<{ name: string }>(
      `select spcname as name from pg_tablespace where spcname not in ('pg_default', 'pg_global')`,
    )
    if (spaces.length > 0)
      throw new Error(
        `the database has the tablespace ${spaces[0]?.name}: tablespaces are not supported`,
      )
  } finally {
    await database.close()
    await server.stop()
  }
  writeEmbeddedSettings(data)
  takeEmbeddedData(home)
  rmSync(join(data, 'backup_label.old'), { force: true })
}

/**
 * Checks that the database is empty.
 * @throws Error if it has tables already
 */
export async function checkExternalEmpty(databaseUrl: string): Promise<void> {
  const database = openDatabase(databaseUrl, { max: 1 })
  try {
    const match = await database.one<{ tables: string }>(
      `select count(*) as tables from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p', 'S', 'v')
         and n.nspname not in ('pg_catalog', 'information_schema')
         and n.nspname not like 'pg_toast%'`,
    )
    if (match?.tables !== '0')
      throw new Error(
        'the database of DATABASE_URL is not empty: a backup can be restored only into an empty database',
      )
  } finally {
    await database.close()
  }
}

/**
 * Restores a dump in one transaction. pg_restore reads a copy in the data folder that was compared
 * with the manifest.
 * @throws Error
 */
export async function placeExternal(
  home: string,
  databaseUrl: string,
  from: string,
  manifest: Manifest,
): Promise<void> {
  const dump = join(home, 'dump')
  await copyVerified(from, entryOf(manifest, 'database/dump'), dump)
  const { url, env } = withoutPassword(databaseUrl)
  withEnvironment(env, () =>
    program('pg_restore', [
      '--no-owner',
      '--no-privileges',
      '--exit-on-error',
      '--single-transaction',
      `--dbname=${url}`,
      dump,
    ]),
  )
  rmSync(dump)
}
