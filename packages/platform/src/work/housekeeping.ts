import type { Services } from '../services.ts'
import type { Loop } from './loop.ts'

/** Forgets nonces and rate windows that can no longer matter. */
export function housekeepingLoop(services: Services): Loop {
  return {
    name: 'housekeeping',
    everyMs: 30_000,
    async run() {
      await services.database.query('delete from request_nonces where ctid in (select ctid from request_nonces where expires_at < now() limit 50000)')
      await services.database.query(`delete from rate_windows where window_start < now() - interval '5 minutes'`)
      return false
    },
  }
}
