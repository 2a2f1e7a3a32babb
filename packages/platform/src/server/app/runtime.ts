import { lookup } from 'node:dns'
import type { DestinationStream } from 'pino'
import { startEmbeddedPostgres } from '../../core/database/embedded.ts'
import { openDatabase } from '../../core/database/pool.ts'
import { systemEnvironment, type Environment } from '../../core/environment.ts'
import type { Resolve } from '../../events/webhooks/egress-policy.ts'
import { startLocal } from './local/local.ts'
import { logDestination } from './log-lines.ts'
import type { Settings } from '../../core/settings/settings.ts'

/**
 * Environment of a platform. A test provides its own: another clock, other servers, a network that
 * can be interrupted.
 */
export interface Runtime {
  environment: Environment
  fetch: typeof globalThis.fetch
  /** Resolves host names. */
  resolve: Resolve
  openDatabase: typeof openDatabase
  startPostgres: typeof startEmbeddedPostgres
  startLocal: typeof startLocal
  /** Destination of log lines. */
  log: DestinationStream
}

/**
 * Returns the environment of this machine: its clock, its network, PostgreSQL and signer nodes as
 * child processes, and the log on standard error.
 */
export const hostRuntime = (logFormat: Settings['logFormat']): Runtime => ({
  environment: systemEnvironment(),
  fetch: globalThis.fetch,
  resolve: lookup,
  openDatabase,
  startPostgres: startEmbeddedPostgres,
  startLocal,
  log: logDestination(logFormat),
})
