import { reasonOf } from '@custody/chains/reason'
import { inTrace } from '@custody/tracing'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../ledger/notifier.ts'
import type { LoadMonitor } from '../load-monitor.ts'
import type { Tanks } from './interfaces/tanks.ts'
import { ruleOf, type EngineStep, type Kinds } from './interfaces/kind.ts'
import { advance, claim, LeaseLost, RENEW_MS, renew, type Change } from './lease.ts'
import type { Loop } from './loops/loop.ts'
import { build } from './build.ts'
import { broadcast } from './broadcast.ts'
import { confirm } from './outcomes/confirm.ts'
import { awaitFuel } from './fuel.ts'
import { replace } from './replace.ts'
import { sign } from './sign.ts'
import { failCancelled, voidAndFail } from './outcomes/fail.ts'
import type { TransactionRow } from './transaction.ts'
import { codeOf } from './waiting.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  metrics: Metrics
  log: Logger
  work: Notifier
  pressure: LoadMonitor
  kinds: Kinds
  tanks: Tanks
}

const CONCURRENCY = 16
/**
 * Number of concurrent steps while requests keep this process busy. During a burst of requests no
 * step is started.
 */
const CONCURRENCY_LEAST = 2
const RETRY_MIN_MS = 500
/** Longest pause before a failed step is retried, in milliseconds. */
export const RETRY_MAX_MS = 30_000
/**
 * Milliseconds for which releasing a lease is retried. By then it is released or another worker has
 * taken it.
 */
const GIVE_BACK_MS = 90_000

const STEPS: Record<EngineStep, (services: Services, row: TransactionRow) => Promise<void>> = {
  build,
  awaitFuel,
  sign,
  broadcast,
  confirm,
  replace,
  void: voidAndFail,
}

/** Steps that start a payment; they wait while an endpoint contradicts a final block. */
const HALTED_STEPS: ReadonlySet<unknown> = new Set<EngineStep>(['build', 'sign', 'replace'])

/**
 * Runs one step of a leased transaction. An error leaves the state unchanged, and the step is
 * retried later.
 */
export async function runStep(services: Services, row: TransactionRow): Promise<void> {
  const { kind, asset, network, state, attempts } = row
  await inTrace(row.id, state.toLowerCase(), { kind, asset, network, attempts }, () =>
    doStep(services, row),
  )
}

/** Does what the kind's table requires in the transaction's state. */
async function runRule(services: Services, row: TransactionRow): Promise<void> {
  const { run, endsIfCancelled } = ruleOf(services.kinds, row) ?? {}
  if (run === undefined) throw new Error(`the state ${row.state} has no step`)
  if (row.plan.cancel && endsIfCancelled) return failCancelled(services, row)
  if (row.isHalted && (HALTED_STEPS.has(run) || row.state === 'SCREENING'))
    return advance(services.database, row, {
      waits: 'FINAL_BLOCK',
      last_error: 'an endpoint contradicts a final block',
      run_in_ms: RETRY_MAX_MS,
    })
  return typeof run === 'string' ? STEPS[run](services, row) : run(row)
}

async function doStep(services: Services, row: TransactionRow): Promise<void> {
  try {
    await runRule(services, row)
    services.metrics.steps.labels(row.kind, row.state, 'done').inc()
    services.log.debug(
      {
        transaction: row.id,
        kind: row.kind,
        asset: row.asset,
        state: row.state,
        attempts: row.attempts,
      },
      'step completed',
    )
  } catch (error) {
    services.metrics.steps.labels(row.kind, row.state, 'failed').inc()
    if (error instanceof LeaseLost) return
    const message = reasonOf(error)
    if (row.attempts === 1 || row.attempts % 20 === 0) {
      services.log.warn(
        { transaction: row.id, state: row.state, attempts: row.attempts, err: message },
        'a processing step of a transaction failed; it is retried',
      )
    }
    const pause = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(10, row.attempts - 1))
    await giveBack(services, row, {
      waits: codeOf(error, row.state),
      last_error: message.slice(0, 500),
      run_in_ms: pause,
    })
  }
}

/**
 * Releases the lease. Retries while the database is unreachable, because the row would otherwise
 * wait until its lease expires.
 */
async function giveBack(services: Services, row: TransactionRow, change: Change): Promise<void> {
  const until = services.environment.now() + GIVE_BACK_MS
  while (services.environment.now() < until) {
    try {
      return await advance(services.database, row, change)
    } catch (error) {
      if (error instanceof LeaseLost) return
      await services.environment.sleep(RETRY_MIN_MS)
    }
  }
}

/**
 * Creates the worker's loop. It keeps up to 16 steps in progress, fewer while requests need the
 * processor.
 */
export function transactionLoop(services: Services): Loop {
  /** Steps in progress, with the tokens of their leases. */
  const running = new Map<Promise<void>, string | null>()
  let renewedAt = services.environment.now()
  const keep = async () => {
    const now = services.environment.now()
    if (Math.abs(now - renewedAt) < RENEW_MS) return
    renewedAt = now
    const tokens = [...running.values()].filter((token) => token !== null)
    if (tokens.length > 0) await renew(services, tokens)
  }
  return {
    name: 'transactions',
    // Work created by other processes is found by polling; work of this process is reported by the
    // notifier.
    everyMs: 250,
    due: 'exists (select 1 from transactions where next_run_at <= $1 and (lease_until is null or lease_until < $1))',
    notifier: services.work,
    async run(signal) {
      const { isBurst, isHigh } = services.pressure
      const free = (isBurst ? 0 : isHigh ? CONCURRENCY_LEAST : CONCURRENCY) - running.size
      if (free > 0) {
        for (const row of await claim(services, free)) {
          const work = runStep(services, row).finally(() => running.delete(work))
          running.set(work, row.lease_token)
        }
      }
      await keep()
      if (signal.aborted) await Promise.all(running.keys())
      if (running.size === 0) return false
      await Promise.race([...running.keys(), services.environment.sleep(100, signal)])
      return true
    },
  }
}
