import { lookup } from 'node:dns'
import { pino, type DestinationStream } from 'pino'
import { startEmbeddedPostgres } from '../database/embedded.ts'
import { openDatabase } from '../database/pool.ts'
import { systemEnvironment, type Environment } from '../environment.ts'
import type { Resolve } from '../webhooks/egress-policy.ts'
import { startLocal } from './local.ts'

/**
 * What a platform finds around it. A test gives another: its own clock, its own servers, a network
 * that it can cut.
 */
export interface Runtime {
  environment: Environment
  fetch: typeof globalThis.fetch
  /** Names of hosts. */
  resolve: Resolve
  openDatabase: typeof openDatabase
  startPostgres: typeof startEmbeddedPostgres
  startLocal: typeof startLocal
  /** Where the log's lines go. */
  log: DestinationStream
}

/**
 * This machine: its clock, its network, PostgreSQL and signer nodes as processes, the log on
 * standard error.
 */
export const hostRuntime = (): Runtime => ({
  environment: systemEnvironment(),
  fetch: globalThis.fetch,
  resolve: lookup,
  openDatabase,
  startPostgres: startEmbeddedPostgres,
  startLocal,
  log: pino.destination(2),
})
