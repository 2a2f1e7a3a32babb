import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Aml } from '../aml/aml.ts'
import type { State, TransactionRow } from '../../core/engine/transaction.ts'
import { advance } from '../../core/engine/lease.ts'
import { addressKey, addressKeys, spaceOf } from '../aml/address-key.ts'
import {
  clearedFor,
  confirmHits,
  frozenAmong,
  hold,
  holdOffFreezing,
  isHeld,
  lockFreezing,
} from '../aml/frozen.ts'
import { freshAnswers, FRESH_MS, screen, ScreeningWaits } from '../aml/screen.ts'
import { isOn, readPolicy } from '../aml/policy.ts'
import { NO_WAIT, waitForProvider } from '../aml/waiting.ts'
import { unbuild } from './unbuild.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  aml: Aml
}

/**
 * Interval at which a held transfer checks for its release, in milliseconds. Unfreezing wakes it
 * immediately; the poll covers processes that were killed.
 */
const HELD_POLL_MS = 10 * 60_000

const networkOf = (services: Pick<Services, 'networks'>, row: TransactionRow) =>
  services.networks.get(row.network).network

/**
 * Whether the recipient is not on the frozen list. Nothing is added to the list until the database
 * transaction ends.
 */
export async function isUnfrozen(
  services: Pick<Services, 'networks'>,
  tx: Queryable,
  row: TransactionRow,
): Promise<boolean> {
  await holdOffFreezing(tx, row.sub_account_id as string)
  return (await freezesOf(services, tx, row)).length === 0
}

const freezesOf = (
  services: Pick<Services, 'networks'>,
  database: Queryable,
  row: TransactionRow,
) => {
  const network = networkOf(services, row)
  return frozenAmong(database, row, {
    space: spaceOf(network),
    keys: addressKeys(network, row.destination_id as string),
  })
}

/**
 * Whether nothing prevents signing now, without querying other services: OFAC's list, the frozen
 * list and a recent response of the screening provider.
 */
async function isClear(services: Services, row: TransactionRow): Promise<boolean> {
  const network = networkOf(services, row)
  const address = row.destination_id as string
  const subAccountId = row.sub_account_id as string
  if (services.aml.sanctions.has(network, address)) return false
  if ((await freezesOf(services, services.database, row)).length > 0) return false
  const key = addressKey(network, address)
  const policy = await readPolicy(services.database, row.workspace_id, subAccountId)
  if (!isOn(policy, 'withdrawal') || (await clearedFor(services.database, row)).has(key))
    return true
  const level = (await freshAnswers(services, row, network, policy, [key])).get(key)
  return level === null || (level !== undefined && !policy.risk_levels.includes(level))
}

/**
 * CREATED → QUEUED, or → SCREENING if the provider must be queried or something prevents signing.
 */
export async function startScreening(services: Services, row: TransactionRow): Promise<void> {
  const clear = await isClear(services, row)
  await advance(services.database, row, { state: clear ? 'QUEUED' : 'SCREENING', run_in_ms: 0 })
  services.environment.checkpoint(clear ? 'transaction.queued' : 'transaction.screening')
}

/**
 * SCREENING → AML_HELD, or back to the state that the transfer came from. Without a clear response
 * it stays in SCREENING.
 */
export async function screenWithdrawal(services: Services, row: TransactionRow): Promise<void> {
  const network = networkOf(services, row)
  const parties = [{ address: row.destination_id as string, tag: row.address_tag }]
  let held: boolean
  try {
    const hits = await screen(services, row, network, 'withdrawal', parties)
    held = await services.database.transaction(async (tx) => {
      await lockFreezing(tx, row.sub_account_id as string)
      const keys = addressKeys(network, row.destination_id as string)
      const all = await confirmHits(tx, row, { space: spaceOf(network), keys }, hits)
      if (all === null) {
        await advance(tx, row, { run_in_ms: 0 })
        return false
      }
      if (all.length > 0) await hold(services, tx, row, spaceOf(network), all)
      const [state, run_in_ms] =
        all.length > 0
          ? (['AML_HELD', HELD_POLL_MS] as const)
          : ([(row.plan.resume ?? 'QUEUED') as State, 0] as const)
      await advance(tx, row, {
        state,
        waits: state === 'AML_HELD' ? 'AML_HELD' : null,
        last_error: null,
        plan: NO_WAIT,
        run_in_ms,
      })
      return all.length > 0
    })
  } catch (error) {
    if (error instanceof ScreeningWaits) return waitForProvider(services, row, error)
    throw error
  }
  services.environment.checkpoint(held ? 'transaction.held' : 'transaction.screened')
}

/**
 * AML_HELD → SCREENING, once no freeze holds the transfer. Unfrozen addresses are not screened
 * again.
 */
export async function awaitUnfreezing(
  services: Pick<Services, 'environment' | 'database'>,
  row: TransactionRow,
): Promise<void> {
  const held = await services.database.transaction(async (tx) => {
    await lockFreezing(tx, row.sub_account_id as string)
    const is = await isHeld(tx, row)
    await advance(
      tx,
      row,
      is ? { waits: 'AML_HELD', run_in_ms: HELD_POLL_MS } : { state: 'SCREENING', run_in_ms: 0 },
    )
    return is
  })
  if (!held) services.environment.checkpoint('transaction.released')
}

/**
 * Screens a transfer again before it is built and immediately before it is signed. A transfer that
 * was not submitted to a signer node releases its nonce or coins, because every later transfer
 * would otherwise wait with it.
 * @returns true if the transfer was returned to SCREENING; the caller must not process it further
 */
export async function screenAgain(services: Services, row: TransactionRow): Promise<boolean> {
  // A new transfer was screened a moment ago, so it is not screened again.
  if (row.state === 'QUEUED' && services.environment.now() - row.created_at.getTime() < FRESH_MS)
    return false
  if (await isClear(services, row)) return false
  await services.database.transaction(async (tx) => {
    // A transfer that has taken fuel from the tank keeps its plan; its fee is not planned a second
    // time.
    const before = services.networks.get(row.network).fuelled ? 'FUELING' : 'QUEUED'
    const resume =
      row.state === 'SIGNING' && (await unbuild(services, tx, row)) ? before : row.state
    await advance(tx, row, { state: 'SCREENING', plan: { resume }, run_in_ms: 0 })
  })
  return true
}
