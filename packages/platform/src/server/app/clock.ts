import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import type { Loop } from '../../core/engine/loops/loop.ts'

interface Services {
  settings: Pick<Settings, 'role'>
  database: Database
  log: Logger
}

/**
 * Smaller corrections of the clock, in milliseconds, are ignored; they are frequent and delay work
 * by no more than this.
 */
const NOTICED_MS = 2000

/** Columns that contain due times, by table, including leases. */
const TIMES: Readonly<Record<string, readonly string[]>> = {
  transactions: ['next_run_at', 'lease_until'],
  network_scans: ['lease_until'],
  forward_rules: ['next_run_at'],
  invoices: ['due_at'],
  webhook_deliveries: ['next_at'],
  orders: ['next_run_at', 'lease_until'],
  exchange_accounts: ['reconcile_at', 'lease_until'],
  exchange_transfers: ['next_run_at', 'lease_until'],
}

/**
 * Creates the loop that detects when the clock was set back. Work scheduled with the wrong clock
 * would wait as long as the clock was ahead, so all due times are moved back by the difference, but
 * not before now. Work scheduled earlier runs early by at most that difference; each step checks
 * its own conditions.
 */
export function clockLoop({ database, log, settings }: Services): Loop {
  // If processes on other hosts write too, the time of the last scan reflects their clocks, not
  // this one.
  let last: number | null =
    settings.role === 'worker' || settings.role === 'scanner' ? database.now().getTime() : null
  return {
    name: 'clock',
    everyMs: 1000,
    async run() {
      // When a process starts, the time of the last scan shows whether the clock was ahead before.
      const before: number =
        last ??
        (
          await database.one<{ at: Date | null }>('select max(updated_at) at from network_scans')
        )?.at?.getTime() ??
        0
      const now = database.now().getTime()
      last = now
      const backMs = before - now
      if (backMs < NOTICED_MS) return false
      log.warn(
        { back_s: Math.round(backMs / 1000) },
        'the clock of the host was set back; the times of waiting work are set back by the same amount',
      )
      try {
        await database.transaction(async (tx) => {
          for (const [table, columns] of Object.entries(TIMES)) {
            const earlier = columns.map(
              (name) => `${name} = case when ${name} > $1
              then greatest($1::timestamptz, ${name} - $2::bigint * interval '1 millisecond') else ${name} end`,
            )
            await tx.query(
              `update ${table} set ${earlier.join(', ')}
                where ${columns.map((name) => `${name} > $1`).join(' or ')}`,
              [database.now(), Math.round(backMs)],
            )
          }
        })
      } catch (error) {
        // The transaction changed nothing; the next iteration detects the difference again.
        last = before
        throw error
      }
      return false
    },
  }
}
