import { cpus } from 'node:os'
import { performance } from 'node:perf_hooks'

/** Number of in-flight requests above which background work is throttled. */
const REQUESTS_MANY = 8
/**
 * Time in milliseconds for which requests have absolute priority over other work. The used time is
 * regained while there are fewer requests.
 */
export const PRIORITY_MS = 2000
/** Busy fraction of the event loop's time above which the event loop is the bottleneck. */
const LOOP_FULL = 0.9
/**
 * Busy fraction of all processors' time above which the machine is the bottleneck. The database and
 * the nodes may share the processors.
 */
const MACHINE_FULL = 0.95
/** Duration of one measurement, in milliseconds. */
const LOOKED_AT_MS = 50

/** Cumulative milliseconds of this machine's processors or of the event loop, total and busy. */
export interface Utilization {
  all: number
  busy: number
}

/** Sources of the measured values. */
export interface Meters {
  processors(): Utilization
  loop(): Utilization
}

function processors(): Utilization {
  const sums = { all: 0, busy: 0 }
  for (const { times } of cpus()) {
    const busy = times.user + times.nice + times.sys + times.irq
    sums.busy += busy
    sums.all += busy + times.idle
  }
  return sums
}

function loop(): Utilization {
  const { active, idle } = performance.eventLoopUtilization()
  return { all: active + idle, busy: active }
}

/** Sources for this machine and this process. */
export const systemMeters: Meters = { processors, loop }

/** Returns the busy fraction of the time between two readings. */
const shareBusy = (from: Utilization, to: Utilization): number =>
  (to.busy - from.busy) / Math.max(1, to.all - from.all)

/**
 * Determines whether requests keep this process busy. A caller waits for the response, whereas a
 * transfer can wait some seconds longer for its chain, so background work is paused completely
 * during a short burst. If the load lasts longer, background work is throttled only if it competes
 * for the same processor, and not at all if processors are idle.
 */
export class LoadMonitor {
  readonly #clock: () => number
  #requests = 0
  #first = PRIORITY_MS
  #at: number
  readonly #meters: Meters
  #loop: Utilization
  #processors: Utilization
  #isFull = false

  /**
   * Starts with the current values of the meters.
   * @param clock returns the environment's time in milliseconds
   * @param meters sources of measured values; tests replace the machine's
   */
  constructor(clock: () => number = Date.now, meters: Meters = systemMeters) {
    this.#clock = clock
    this.#meters = meters
    this.#processors = meters.processors()
    this.#loop = meters.loop()
    this.#at = clock()
  }

  /** Counts a request while it is being processed. */
  async during<T>(answer: () => Promise<T>): Promise<T> {
    this.#pass()
    this.#requests++
    try {
      return await answer()
    } finally {
      this.#pass()
      this.#requests--
    }
  }

  /**
   * Whether there is a burst of requests, which has absolute priority. True for at most {@link
   * PRIORITY_MS} at a time, and for at most half of all time.
   */
  get isBurst(): boolean {
    this.#pass()
    return this.#isMany && this.#first > 0
  }

  get isHigh(): boolean {
    // The measurement is always made, so that it covers only the latest interval.
    const isBound = this.#isBound
    return this.#isMany && (this.isBurst || isBound)
  }

  /** Whether the event loop or the machine is fully loaded. */
  get #isBound(): boolean {
    const loop = this.#meters.loop()
    if (loop.all - this.#loop.all >= LOOKED_AT_MS) {
      const processors = this.#meters.processors()
      this.#isFull =
        shareBusy(this.#loop, loop) >= LOOP_FULL ||
        shareBusy(this.#processors, processors) >= MACHINE_FULL
      this.#loop = loop
      this.#processors = processors
    }
    return this.#isFull
  }

  get #isMany(): boolean {
    return this.#requests >= REQUESTS_MANY
  }

  /** Updates how much of {@link PRIORITY_MS} is used, for the time since the last call. */
  #pass(): void {
    const now = this.#clock()
    // An adjustment of the clock only makes one burst longer or shorter.
    const passed = Math.abs(now - this.#at)
    this.#at = now
    this.#first = this.#isMany
      ? Math.max(0, this.#first - passed)
      : Math.min(PRIORITY_MS, this.#first + passed)
  }
}
