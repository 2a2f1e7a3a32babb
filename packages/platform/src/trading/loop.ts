import { reasonOf } from '@custody/chains/reason'
import type { Loop } from '../engine/loop.ts'
import type { Services } from '../engine/services.ts'
import type { Bell } from '../ledger/bell.ts'
import { claimOrder } from './lease.ts'
import type { OrderRow } from './order.ts'
import { stepOrder } from './step.ts'

const AT_ONCE = 16
/** One venue that is slow holds up no more. */
const OF_AN_ACCOUNT = 4
const ERROR_WAIT_MS = 10_000

/** Of orders. */
export interface Trading {
  /** Rung when an order of this process is due. */
  due: Bell
}

declare module '../engine/services.ts' {
  interface Services { trading: Trading }
}

/** Works on orders that are due, several at once, few of one account. */
export function orderLoop(services: Services): Loop {
  const busy = new Map<string, number>()
  const running = new Set<Promise<void>>()
  const start = (row: OrderRow): void => {
    busy.set(row.account_id, (busy.get(row.account_id) ?? 0) + 1)
    const work = workOn(services, row).finally(() => {
      busy.set(row.account_id, (busy.get(row.account_id) ?? 1) - 1)
      running.delete(work)
      services.trading.due.ring()
    })
    running.add(work)
  }
  return {
    name: 'orders', everyMs: services.settings.pollMs,
    async run(signal) {
      const full = [...busy].filter(([, count]) => count >= OF_AN_ACCOUNT).map(([account]) => account)
      const row = running.size < AT_ONCE ? await claimOrder(services, full) : undefined
      if (row) start(row)
      else await services.trading.due.wait(services.settings.pollMs, signal)
      if (signal.aborted) await Promise.all(running)
      return true
    },
  }
}

/** One step. What goes wrong with one order keeps no other waiting. */
export async function workOn(services: Services, row: OrderRow): Promise<void> {
  try {
    await stepOrder(services, row)
  } catch (error) {
    services.log.warn({ order: row.id, err: reasonOf(error) }, 'an order’s step failed; it is tried again')
    await services.database.query(
      'update orders set lease_until = null, lease_token = null, next_run_at = $3 where id = $1 and lease_token = $2',
      [row.id, row.lease_token, new Date(services.environment.now() + ERROR_WAIT_MS)]).catch(() => undefined)
  }
}
