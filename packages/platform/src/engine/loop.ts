import { reasonOf } from '@custody/chains/reason'
import type { Services } from './services.ts'

/** A step function that is called again and again; true: there is more to do at once. */
export interface Loop { name: string; everyMs: number; run(signal: AbortSignal): Promise<boolean> }

const BACKOFF_MAX_MS = 15_000

/** Runs loops until the signal; an error is logged, and the loop goes on after a growing pause. */
export async function runLoops(services: Services, loops: readonly Loop[], signal: AbortSignal): Promise<void> {
  await Promise.all(loops.map(async (loop) => {
    let failures = 0
    while (!signal.aborted) {
      let more = false
      try {
        more = await loop.run(signal)
        failures = 0
      } catch (error) {
        failures++
        if (!signal.aborted && (failures === 1 || failures % 20 === 0)) {
          services.log.warn({ loop: loop.name, failures, err: reasonOf(error) }, 'loop failed; it goes on')
        }
      }
      if (more || signal.aborted) continue
      await services.environment.sleep(
        failures > 0 ? Math.min(BACKOFF_MAX_MS, loop.everyMs * 2 ** Math.min(failures, 10)) : loop.everyMs, signal
      )
    }
  }))
}
