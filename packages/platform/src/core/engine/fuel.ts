import { buildFuelled } from './build.ts'
import { cancelUnsigned, startFailing } from './fail.ts'
import { advance, wakeOne } from './lease.ts'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

const FUELLED = new Set(['FUELING'])

/** FUELING: builds the transaction once its fuel is booked at the source address. */
export async function awaitFuel(services: Services, row: TransactionRow): Promise<void> {
  const fails = (reason: string) =>
    services.database.transaction((tx) => startFailing(services, tx, row, reason))
  const recorded = await services.kinds[row.kind].recorded?.(services, row)
  if (recorded && 'reason' in recorded) return fails(recorded.reason)
  if (recorded)
    return advance(services.database, row, {
      state: 'CONFIRMING',
      hash: recorded.hash,
      last_error: null,
      run_in_ms: 0,
    })
  const fuel = await services.tanks.arrived(services, row)
  if (fuel === 'waits') {
    await advance(services.database, row, { waits: 'GAS_TANK', run_in_ms: null })
    // Fuel that arrived during this step could not wake the transaction, so its arrival is checked
    // again.
    if ((await services.tanks.arrived(services, row)) !== 'waits')
      await wakeOne(services.database, row.workspace_id, row.id)
    return
  }
  if (fuel === 'alone') return services.tanks.startAlone(services, row)
  if (fuel !== 'arrived') return fails(fuel.reason)
  if (await cancelUnsigned(services, row, FUELLED)) return
  await buildFuelled(services, row)
}
