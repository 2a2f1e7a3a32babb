import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../src/core/database/embedded.ts'
import { OWNER, SUPERUSER } from '../src/core/database/embedded-roles.ts'
import { openDatabase, type Database, type DatabaseOptions } from '../src/core/database/pool.ts'
import { prepareDatabase } from './prepared-database.ts'

/**
 * Database time-outs that are long enough never to apply, because this machine's clock is part of
 * neither a test nor the simulation.
 */
export const DATABASE_TIMEOUTS = {
  answerMs: 3_600_000,
  commitMs: 3_600_000,
  connectMs: 3_600_000,
  shortTimeoutMs: 3_600_000,
}

/**
 * Databases of tests on a PostgreSQL server that all files of a run share. `npm test` starts the
 * server (global-setup.ts). A file that is run without it starts its own server for all of its
 * databases.
 */

/** Environment variable with the URL of the shared server. */
export const SERVER_URL = 'CUSTODY_TEST_POSTGRES'
/** Enough for the pools of all platforms that run concurrently. */
const CONNECTIONS_MAX = 500

/**
 * Server of a test's database.
 *
 * - `shared`: the server of the run. Roles, settings, transaction numbers and the list of
 *   connections are those of the whole server, so other tests may change them.
 * - `own`: a new server, for tests of the server itself: its start, end, files, log or settings.
 */
export type ServerMode = 'shared' | 'own'

/**
 * The database's roles: the platform under test connects with `url`, whose role has the rights of
 * the platform's processes. Tests that need more use the superuser's connection explicitly.
 */
export interface TestDatabase {
  url: string
  ownerUrl: string
  adminUrl: string
  /** Closes all connections to the database and deletes it. */
  remove(): Promise<void>
}

export interface TestServer extends Pick<
  EmbeddedPostgres,
  'url' | 'ownerUrl' | 'adminUrl' | 'pid'
> {
  /** Stops the server and deletes its files. */
  remove(): Promise<void>
}

/**
 * Starts a server.
 * @param migrated whether its database `custody` has the tables of this version
 */
export async function startTestServer(migrated = true): Promise<TestServer> {
  const home = mkdtempSync(join(tmpdir(), 'custody-postgres-'))
  if (migrated) await prepareDatabase(home)
  const postgres = await startEmbeddedPostgres(home, undefined, { connectionsMax: CONNECTIONS_MAX })
  const { url, ownerUrl, adminUrl, pid } = postgres
  return {
    url,
    ownerUrl,
    adminUrl,
    pid,
    remove: async () => {
      await postgres.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Server that this process has started because the run has none, and its number of databases. */
let lone: { server: Promise<TestServer>; count: number } | null = null

/** Returns a database for one test file or platform, with empty tables or without tables. */
export async function createTestDatabase({
  migrated = true,
  server = 'shared',
}: { migrated?: boolean; server?: ServerMode } = {}): Promise<TestDatabase> {
  if (server === 'own') return startTestServer(migrated)
  const isLone = process.env[SERVER_URL] === undefined
  if (isLone) {
    lone ??= { server: startTestServer(), count: 0 }
    lone.count++
  }
  const url =
    process.env[SERVER_URL] ?? (await (lone as { server: Promise<TestServer> }).server).url
  const name = `test_${randomUUID().replaceAll('-', '')}`
  // A copy of the files instead of the WAL, because the server does not wait for the disk.
  await administer(
    url,
    `create database ${name} template ${migrated ? 'custody' : 'template0'} owner ${OWNER} strategy file_copy`,
  )
  return {
    url: onServer(url, name),
    ownerUrl: onServer(asRole(url, OWNER), name),
    adminUrl: onServer(asRole(url, SUPERUSER), name),
    remove: async () => {
      await administer(url, `drop database ${name} with (force)`)
      if (!isLone || !lone || --lone.count > 0) return
      const { server: last } = lone
      lone = null
      await (await last).remove()
    },
  }
}

/** Returns the URL of another database of the same server. */
const onServer = (url: string, name: string): string => url.replace('/custody?', `/${name}?`)

/** Returns the URL of the same database for another role of an embedded server. */
const asRole = (url: string, role: string): string =>
  url.replace(/^postgresql:\/\/[a-z_]+@/, `postgresql://${role}@`)

/** Returns the URL of the same database for the superuser of an embedded server. */
export const asAdmin = (url: string): string => asRole(url, SUPERUSER)

const admins = new WeakMap<Database, Database>()

/**
 * Opens a test's database as the platform's processes do, and superuser's connections to it, which
 * {@link adminOf} returns. Closing it closes both.
 */
export function openTestDatabase(
  { url, adminUrl }: Pick<TestDatabase, 'url' | 'adminUrl'>,
  options: DatabaseOptions = {},
): Database {
  const database = openDatabase(url, options)
  const admin = openDatabase(adminUrl, { ...options, max: 2 })
  admins.set(database, admin)
  const { close } = database
  return Object.assign(database, {
    close: async () => {
      await Promise.all([close(), admin.close()])
    },
  })
}

/**
 * Returns the superuser's connection to the database of a connection, for statements of a test that
 * the platform's processes may not run.
 */
export const adminOf = (database: Database): Database => admins.get(database) ?? database

/** Lets {@link adminOf} return the same connection for a wrapper of a connection. */
export function shareAdmin(wrapper: Database, of: Database): Database {
  admins.set(wrapper, adminOf(of))
  return wrapper
}

async function administer(url: string, statement: string): Promise<void> {
  const admin = openDatabase(onServer(asAdmin(url), 'postgres'), {
    max: 1,
    onError: () => undefined,
  })
  try {
    await admin.query(statement)
  } finally {
    await admin.close()
  }
}
