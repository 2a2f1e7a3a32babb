import type { Services } from '../engine/services.ts'
import type { Loop } from '../engine/loop.ts'

/** By less a clock is corrected all the time, and what waits comes late by no more. */
const NOTICED_MS = 2000

/** Whatever waits for a time, by table; leases among it. */
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
 * Notices that the clock was set back. What was put off by the wrong clock would wait for as long
 * as the clock was wrong: it is due so much earlier, yet never before now. What was put off before
 * that comes early by no more; each step looks for itself.
 */
export function clockLoop({ database, log, settings }: Services): Loop {
  // Where processes of other hosts write too, what was scanned last says something of their clocks,
  // not of this one.
  let last: number | null =
    settings.role === 'worker' || settings.role === 'scanner' ? database.now().getTime() : null
  return {
    name: 'clock',
    everyMs: 1000,
    async run() {
      // A process that starts sees by what was last scanned whether the clock was ahead before.
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
        'the clock was set back; waiting work is due earlier by the same amount',
      )
      try {
        await database.transaction(async (tx) => {
          for (const [table, columns] of Object.entries(TIMES)) {
            const earlier = columns.map(
              (name) => `${name} = case when ${name} > $1
              then greatest($1::timestamptz, ${name} - $2::bigint * interval '1 millisecond') else ${name} end`,
            )
            await tx.query(
              `update ${table} set ${earlier.join(', ')} where ${columns.map((name) => `${name} > $1`).join(' or ')}`,
              [database.now(), Math.round(backMs)],
            )
          }
        })
      } catch (error) {
        // It is as it was, and the next turn sees the same.
        last = before
        throw error
      }
      return false
    },
  }
}
