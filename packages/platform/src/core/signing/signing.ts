import type { Logger } from 'pino'
import type { Queryable } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { Metrics } from '../metrics.ts'
import type { SignerNodes } from './nodes.ts'

/** Dependencies for calling the signer nodes. */
export interface Signing {
  signers: SignerNodes
  environment: Environment
  database: Queryable
  metrics: Metrics
  log: Logger
}
