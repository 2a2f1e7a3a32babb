import { buildFuelled } from './build.ts'
import { failCancelled, startFailing } from './outcomes/fail.ts'
import { advance, wakeOne } from './lease.ts'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import type { Tanks } from './interfaces/tanks.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  metrics: Metrics
  log: Logger
  kinds: Kinds
  tanks: Tanks
}

/** FUELING: builds the transaction once its fuel is booked at the source address. */
export async function awaitFuel(services: Services, row: TransactionRow): Promise<void> {
  const fails = (reason: string) =>
    services.database.transaction((tx) => startFailing(services, tx, row, reason))
  const recorded = await services.kinds[row.kind].recorded?.(row)
  if (recorded && 'reason' in recorded) return fails(recorded.reason)
  if (recorded)
    return advance(services.database, row, {
      state: 'CONFIRMING',
      hash: recorded.hash,
      last_error: null,
      run_in_ms: 0,
    })
  const fuel = await services.tanks.arrived(row)
  if (fuel === 'waits') {
    const cause = await services.tanks.causeOf(row)
    await advance(services.database, row, { waits: 'GAS_TANK', cause, run_in_ms: null })
    // Fuel that arrived during this step could not wake the transaction, so its arrival is checked
    // again.
    if ((await services.tanks.arrived(row)) !== 'waits')
      await wakeOne(services.database, row.workspace_id, row.id)
    return
  }
  // In QUEUED the policy judges the transaction itself, so it waits for approvals or fails there.
  if (fuel === 'refused') return services.tanks.startAgain(row)
  if (fuel === 'alone') return services.tanks.startAlone(row)
  if (fuel !== 'arrived') return fails(fuel.reason)
  // A cancellation waits for the fuel, so that the ledger knows where the fuel is.
  if (row.plan.cancel) return failCancelled(services, row)
  // The policy did not allow it a moment ago; without this check it would take a nonce each time.
  if (row.waiting?.code === 'POLICY' && (await services.kinds[row.kind].heldBack?.(row))) return
  await buildFuelled(services, row)
}
