import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Aml } from '../aml/aml.ts'
import type { Database } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { Callers } from '../http/callers.ts'
import type { Metrics } from '../metrics.ts'
import type { Networks } from './networks.ts'
import type { Prices } from '../prices/prices.ts'
import type { Settings } from '../settings.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'

/** `ready`: POST /transaction would be accepted. `signing`: what was accepted would also be signed. `checks`: why not, part by part. */
export interface Readiness { ready: boolean; signing: boolean; checks: Record<string, string> }

/** What a handler or worker may use; made once at start. */
export interface Services {
  settings: Settings
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  callers: Callers
  signers: SignerNodes
  keys: WorkspaceKeys
  aml: Aml
  prices: Prices
  metrics: Metrics
  log: Logger
  readiness(): Promise<Readiness>
  /** Speaks to the local chains' control face; null on mainnet. */
  devnet: ((command: Record<string, unknown>) => Promise<Record<string, unknown>>) | null
}
