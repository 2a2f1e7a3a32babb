import { performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_MS = 5000
/** Share of its time that the event loop of an idle process is busy at most. */
const IDLE = 0.1
/**
 * What a young generation may hold on to, in bytes: one that was busy keeps 48 MB, and a start is
 * busy.
 */
const YOUNG_MAX = 8 * 2 ** 20

/**
 * Has a process that became idle give back what it needed while it was busy: the collector shrinks
 * the young generation only where it is called, and what an idle platform does keeps it from ever
 * being called for that. It takes some 60 ms, once after a start and once after each load.
 * @returns what ends it
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
