import { performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_MS = 5000
/** Maximum share of time for which the event loop of an idle process is busy. */
const IDLE = 0.1
/**
 * Maximum size of the young generation in bytes. After load (a start is load too) it would
 * otherwise keep 48 MB.
 */
const YOUNG_MAX = 8 * 2 ** 20

/**
 * Makes a process that became idle release the memory that it needed while busy. The garbage
 * collector only shrinks the young generation when it runs, and an idle platform allocates too
 * little to trigger it. A run takes about 60 ms, once after a start and once after each load.
 * @returns a function that stops the checks
 */
export function giveBackWhenIdle(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let last = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    if (utilization < IDLE && heldByYoung() > YOUNG_MAX) collect()
  }, LOOK_MS).unref()
  return () => clearInterval(timer)
}

const heldByYoung = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
    ?.physical_space_size ?? 0
