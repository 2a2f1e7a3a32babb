import { NotAdopted } from '../../recovery/open.ts'
import { reconcile, type ReconcileJob } from '../../recovery/reconcile.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../../core/engine/networks.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import type { WorkspaceKeys } from '../../../core/signing/keys.ts'
import type { Addresses } from '../../../core/engine/interfaces/addresses.ts'
import type { Logger } from 'pino'
import type { DatabaseHold } from '../../../core/engine/database-hold.ts'
import type { Aml } from '../../../custody/aml/aml.ts'
import type { Callers } from '../../../core/http/authentication/callers.ts'
import type { Venues } from '../../../commerce/exchanges/venues.ts'
import type { DevnetControl } from '../../../core/devnet.ts'
import { OperatorError, type Command } from '../command.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers' | 'role'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  addresses: Addresses
  log: Logger
  hold: DatabaseHold
  aml: Aml
  callers: Callers
  exchanges: Venues
  reconciling: { job: ReconcileJob | null }
  devnet: DevnetControl | null
}

const GAP_DEFAULT = 20
const GAP_MAX = 1000
const WAIT_DEFAULT_S = 600
const WAIT_MAX_S = 86_400

function wholeNumber(value: unknown, option: string, fallback: number, max: number): number {
  if (value === undefined || value === null) return fallback
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0 || number > max)
    throw new OperatorError(`--${option}: must be an integer from 0 to ${max}`)
  return number
}

/** Parses NETWORK=HEIGHT, several separated by commas. */
function scanFrom(services: Services, value: unknown): Record<string, number> {
  const heights: Record<string, number> = {}
  for (const part of typeof value === 'string' && value !== '' ? value.split(',') : []) {
    const [network, height, ...more] = part.split('=')
    if (
      !network ||
      !services.registry.network(network) ||
      !/^\d{1,12}$/.test(height ?? '') ||
      more.length > 0
    )
      throw new OperatorError(`--scan-from: ${part} must be NETWORK=HEIGHT, such as ETH=19000000`)
    heights[network] = Number(height)
  }
  return heights
}

/**
 * Starts to adopt the transactions that the signer nodes have recorded; only one reconciliation can
 * run at a time.
 */
export const startReconcile: Command<Services> = async (services, input) => {
  const running = services.reconciling.job
  if (running && running.report === null && running.error === null)
    throw new OperatorError('a reconciliation is already running: wait until it ends')
  const options = {
    dryRun: input['dry_run'] === true,
    scanFrom: scanFrom(services, input['scan_from']),
    gap: wholeNumber(input['gap'], 'gap', GAP_DEFAULT, GAP_MAX),
    waitMs: wholeNumber(input['wait'], 'wait', WAIT_DEFAULT_S, WAIT_MAX_S) * 1000,
  }
  const job: ReconcileJob = { report: null, error: null }
  services.reconciling.job = job
  reconcile(services, options).then(
    (report) => {
      job.report = report
    },
    (error: unknown) => {
      job.error = error instanceof Error ? error : new Error(String(error))
      if (!(error instanceof NotAdopted))
        services.log.error({ err: error }, 'the reconciliation failed')
    },
  )
  return { started: true }
}

/** Returns the result of the reconciliation; `done` is false while it is running. */
export const reconcileOutcome: Command<Pick<Services, 'reconciling'>> = async (services) => {
  const { job } = services.reconciling
  if (!job)
    throw new OperatorError(
      'no reconciliation is running, perhaps because the platform was restarted: run the command again',
    )
  if (job.error) throw new OperatorError(job.error.message)
  return job.report ? { done: true, ...job.report } : { done: false }
}
