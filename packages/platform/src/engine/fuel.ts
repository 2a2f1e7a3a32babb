import { loanOf } from '../gas-tanks/lend.ts'
import { nextRecorded } from '../recovery/stake-steps.ts'
import type { Services } from './services.ts'
import { advance } from './lease.ts'
import type { TransactionRow } from './transaction.ts'
import { buildAccountTransaction } from '../families/evm/build.ts'
import { buildTronTransaction } from '../families/tron/build.ts'
import { planOf } from '../families/evm/plan.ts'
import { cancelUnsigned, startFailing } from './fail.ts'

const FUELLED = new Set(['FUELING'])

/** FUELING: once the fuel is booked, the transfer itself is built. */
export async function awaitFuel(services: Services, row: TransactionRow): Promise<void> {
  if (row.plan['adopted_steps'] !== undefined) {
    const hash = await nextRecorded(services, row)
    if (hash !== null) return advance(services.database, row, { state: 'CONFIRMING', hash, last_error: null, run_in_ms: 0 })
    const gone = 'its next call was never signed, and its request is not known any more'
    if (row.plan['adopted'] !== undefined) return services.database.transaction((tx) => startFailing(services, tx, row, gone))
  }
  const fuelId = row.plan['fuel_id']
  if (fuelId) {
    const fuel = await services.database.one<{ status: string; failure_reason: string | null; settled: string | null }>(
      `select status, failure_reason, plan->>'settled' settled from transactions where id = $1`, [fuelId])
    if (!fuel) throw new Error('fuel of this transfer is missing')
    if (fuel.status === 'failed') return services.database.transaction((tx) => startFailing(services, tx, row, `its fuel failed: ${fuel.failure_reason ?? 'unknown'}`))
    if (fuel.settled !== '1') return advance(services.database, row, { run_in_ms: null })
  }
  const loan = await loanOf(services.database, row)
  if (loan?.status === 'failed') return services.database.transaction((tx) => startFailing(services, tx, row, `energy of the gas tank could not be lent: ${loan.failure_reason ?? 'unknown'}`))
  if (loan && loan.settled !== '1') return advance(services.database, row, { run_in_ms: null })
  if (await cancelUnsigned(services, row, FUELLED)) return
  const { network } = services.networks.get(row.network)
  if (network.family === 'tron') return buildTronTransaction(services, row, network)
  const plan = planOf(row)
  if (!plan) throw new Error('FUELING without a plan')
  await buildAccountTransaction(services, row, network, plan)
}
