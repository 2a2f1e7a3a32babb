import { reasonOf } from '@custody/chains/reason'
import { asInstalled } from '@custody/chains/terminal'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Logger } from 'pino'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { adoptAll } from './adopt-all.ts'
import { isAdoptedSomewhere } from './adopting.ts'
import { NODES_NEEDED, readHistory, saveMarks, type Enrolled, type Recorded } from './history.ts'
import { NotAdopted, open } from './open.ts'

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
  callers: Callers
  devnet: DevnetControl | null
}

const RETRY_MS = 1000
const UNHEARD =
  'fewer than two signer nodes returned their records, so it is unknown whether this database is complete'
const HELD_CHECK_MS = 5000
const CHECK_MS = 60_000

/**
 * Compares the signer nodes' records with this database, and holds or releases the database
 * depending on the result.
 * @returns why the database is held, or null
 */
export async function compareRecords(services: Services): Promise<string | null> {
  if (services.hold.isAdopting) return services.hold.because
  if (await isAdoptedSomewhere(services)) {
    services.hold.set({
      cause: 'comparing',
      reason: 'another process is adopting the records of the signer nodes',
    })
    return services.hold.because
  }
  const { unknown, unsigned, enrolled, marks, missing } = await readHistory(services, false)
  const noted = new Set(
    (
      await services.database.query<{ id: string }>(
        'select id from unadopted_steps where id = any($1)',
        [unknown.map(({ id }) => id)],
      )
    ).map(({ id }) => id),
  )
  let lost = 0
  for (const step of unknown)
    if (!noted.has(step.id) && (await isLost(services, step, enrolled))) lost++
  // A reconciliation may have started to adopt the records while they were being read.
  if (services.hold.isAdopting) return services.hold.because
  if (lost > 0) {
    const what = `the signer nodes have recorded ${lost} transactions that this database does not contain`
    const reason = asInstalled(
      `${what}, so it is older than their records; run: npx custody reconcile`,
    )
    if (services.hold.because !== reason)
      services.log.error(
        { unknown: lost },
        'the signer nodes have recorded transactions that this database does not contain: was an older backup restored? ' +
          asInstalled('Changes are suspended until "npx custody reconcile" has added them'),
      )
    services.hold.set({ cause: 'outdated', reason })
  } else if (marks.length < NODES_NEEDED) {
    // Fewer than two nodes responded: a database that was compared before stays usable, one that
    // was not stays held.
    if (services.hold.because !== null)
      services.hold.set({
        cause: 'unheard',
        reason: `${UNHEARD} (${missing.map(({ node, reason }) => `signer ${node}: ${reason}`).join('; ')})`,
      })
  } else {
    // No loop runs while the database is held. Signatures that were not committed here are adopted
    // before blocks are read, because the change of their transactions would look like a deposit.
    if (services.hold.because !== null && unsigned.length > 0 && services.settings.role !== 'api') {
      await finishUnsigned(services, await nobodys(services, unsigned))
    }
    if (services.hold.because !== null)
      services.log.info('the database contains everything that the signer nodes have recorded')
    await saveMarks(services, marks)
    services.hold.set(null)
  }
  return services.hold.because
}

/**
 * Whether a recorded transaction proves that this database lost something. An unproven record of a
 * single node does not hold the database.
 */
async function isLost(
  services: Services,
  step: Recorded,
  enrolled: readonly Enrolled[],
): Promise<boolean> {
  if (step.nodes.length >= NODES_NEEDED) return true
  const isKnown = await services.database.one('select 1 from workspaces where name = $1', [
    step.workspace,
  ])
  if (!isKnown)
    return enrolled.some(
      ({ workspace, nodes }) => workspace === step.workspace && nodes.length >= NODES_NEEDED,
    )
  try {
    await open(services, step, new Map())
    return true
  } catch (error) {
    if (!(error instanceof NotAdopted)) return true
    services.log.warn(
      { node: step.nodes[0], reason: error.message },
      'a signer node reports a transaction without proof that its caller requested it',
    )
    return false
  }
}

/**
 * Returns the records that no worker of another process has leased. Otherwise that worker commits
 * the signatures, or another one does when the lease expires.
 */
async function nobodys(
  { database, settings }: Services,
  unsigned: readonly Recorded[],
): Promise<Recorded[]> {
  if (settings.role === 'all') return [...unsigned]
  const held = new Set(
    (
      await database.query<{ bytes: string }>(
        `select c.unsigned->>'bytes' bytes from chain_transactions c
       join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
     where c.unsigned->>'bytes' = any($1) and t.lease_until > $2`,
        [unsigned.map((each) => each.unsigned.bytes), database.now()],
      )
    ).map(({ bytes }) => bytes),
  )
  return unsigned.filter((each) => !held.has(each.unsigned.bytes))
}

async function finishUnsigned(services: Services, unsigned: readonly Recorded[]): Promise<void> {
  const { unadopted } = await adoptAll(services, unsigned, {})
  for (const { recorded, error } of unadopted)
    services.log.warn(
      { network: recorded.unsigned.network, purpose: recorded.purpose, reason: error.message },
      'the signer nodes signed a transaction that this database records as unsigned; it is signed again',
    )
}

/**
 * Holds the database before any work starts, until the first comparison has found nothing missing.
 */
export async function holdUntilCompared(services: Services): Promise<void> {
  services.hold.set({
    cause: 'comparing',
    reason: 'the records of the signer nodes are being compared with this database',
  })
  await compareRecords(services).catch((error: unknown) => {
    services.log.warn(
      { err: reasonOf(error) },
      'the records of the signer nodes could not be compared with the database',
    )
  })
  const { held: hold } = services.hold
  // The comparison has already logged that the database is outdated.
  if (!hold || hold.cause === 'outdated') return
  services.log.warn(
    { reason: hold.reason },
    'changes are suspended until the signer nodes have responded',
  )
}

/**
 * Creates the loop that compares the records: frequently while the database is held, otherwise
 * rarely, so that the next start has little to read.
 */
export function compareLoop(services: Services): Loop {
  let comparedAt = services.environment.now()
  return {
    name: 'compare records',
    everyMs: RETRY_MS,
    async run() {
      const now = services.environment.now()
      if (Math.abs(now - comparedAt) < (services.hold.because === null ? CHECK_MS : HELD_CHECK_MS))
        return false
      comparedAt = now
      await compareRecords(services)
      return false
    },
  }
}

/** Wraps a loop so that it does nothing while the database is held. */
export const skipWhileHeld = (services: Pick<Services, 'hold'>, loop: Loop): Loop => ({
  ...loop,
  run: async (signal) => (services.hold.because === null ? loop.run(signal) : false),
})
