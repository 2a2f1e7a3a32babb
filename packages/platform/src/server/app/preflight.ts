import { createServer } from 'node:net'
import { reasonOf } from '@custody/chains/reason'
import { isConnectionError, openDatabase } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'

// The requirements of a start are checked before anything is started. A missing one is reported in
// one line that names the setting.

/** Oldest supported major version of PostgreSQL. */
const POSTGRES_VERSION_MIN = 15

class TooOld extends Error {}

type DatabaseSetting = 'DATABASE_URL' | 'DATABASE_MIGRATION_URL'

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? '')

/** Returns an error that explains why the server cannot listen on an address, and what to do. */
export function listenProblem(
  error: unknown,
  { host, port }: Pick<Settings, 'host' | 'port'>,
): Error {
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new Error(
        `port ${port} of ${host} is in use by another program: end it, or set another port, such as PORT=${port + 1}`,
      )
    case 'EACCES':
      return new Error(`PORT=${port}: this user may not open it; set a port above 1023`)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new Error(`CUSTODY_HOST=${host}: is not an address of this machine`)
    default:
      return new Error(
        `PORT=${port}, CUSTODY_HOST=${host}: the server cannot listen there (${reasonOf(error)})`,
      )
  }
}

/**
 * Checks that the port is free, before anything else is started.
 * @throws Error if the port is in use
 */
export async function checkPort(settings: Pick<Settings, 'host' | 'port'>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const server = createServer()
    server.once('error', (error) => reject(listenProblem(error, settings)))
    server.listen(settings.port, settings.host, () => server.close(() => resolve()))
  })
}

/** Returns an error that explains why a data folder cannot be used, and what to do. */
export function homeProblem(error: unknown, home: string): Error {
  const reasons: Record<string, string> = {
    EACCES: 'this user may not write there',
    EPERM: 'this user may not write there',
    EROFS: 'it is on a read-only file system',
    ENOTDIR: 'a part of the path is a file',
    EEXIST: 'it is a file, or a link to a missing target',
    ENOSPC: 'the disk is full',
  }
  const reason = reasons[codeOf(error)]
  return reason === undefined && error instanceof Error && codeOf(error) === ''
    ? error
    : new Error(
        `CUSTODY_HOME=${home}: ${reason ?? `cannot be used (${codeOf(error)})`}; set it to a folder that this user can write to`,
      )
}

/**
 * Returns an error that explains why a database cannot be used. It never contains the URL, which
 * includes a password.
 */
function databaseProblem(setting: DatabaseSetting, error: unknown): Error {
  if (error instanceof TooOld) return new Error(`${setting}: ${error.message}`)
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'no server responds there: start PostgreSQL, or correct the host and port',
    ENOTFOUND: 'the host is unknown: correct the name',
    EAI_AGAIN: 'the host is unknown: correct the name',
    ETIMEDOUT: 'the host does not respond: check the firewall',
    ENOENT: 'the socket does not exist: start PostgreSQL, or correct the path',
    '28P01': 'the user or password is wrong',
    28000: 'this user may not log in (pg_hba.conf)',
    '3D000': 'the database does not exist: create it with createdb',
    '08P01':
      'a transaction pooler does not support session time-outs: set CUSTODY_DATABASE_POOLER=transaction',
    ERR_INVALID_URL: 'must be a URL such as postgresql://user:password@host:5432/custody',
  }
  const reason =
    reasons[codeOf(error)] ??
    (isConnectionError(error) ? 'the host does not respond, or closes the connection' : undefined)
  return new Error(
    `${setting}: ${reason ?? `the database cannot be used (${codeOf(error) || reasonOf(error)})`}`,
  )
}

/**
 * Checks that the database of a setting can be used.
 * @throws Error that gives the reason
 */
export async function checkDatabase(
  setting: DatabaseSetting,
  url: string,
  pooled = false,
): Promise<void> {
  const database = openDatabase(url, { max: 1, pooled, onError: () => undefined })
  try {
    const version = await database.one<{ version: string }>(
      `select current_setting('server_version_num') version`,
    )
    const major = Math.floor(Number(version?.version) / 10_000)
    if (major < POSTGRES_VERSION_MIN)
      throw new TooOld(
        `PostgreSQL ${major} is too old; ${POSTGRES_VERSION_MIN} or later is required`,
      )
  } catch (error) {
    throw databaseProblem(setting, error)
  } finally {
    await database.close()
  }
}
