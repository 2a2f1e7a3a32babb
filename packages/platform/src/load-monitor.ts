import { cpus } from 'node:os'
import { performance } from 'node:perf_hooks'

/** So many requests at a time are being answered where other work begins to make way. */
const REQUESTS_MANY = 8
/**
 * So long at a stretch they go before other work altogether; what was used of it comes back while
 * they are fewer.
 */
export const PRIORITY_MS = 2000
/** Share of its time that the event loop is busy where it is the bound. */
const LOOP_FULL = 0.9
/** The same of all processors, which database and nodes may share with it. */
const MACHINE_FULL = 0.95
/** Over so many milliseconds that is looked at. */
const LOOKED_AT_MS = 50

/**
 * Milliseconds that this machine's processors, or the event loop, have had so far, and of these the
 * busy ones.
 */
export interface Utilization {
  all: number
  busy: number
}

/** Where the measured values come from. */
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

/** Those of this machine and of this process. */
export const systemMeters: Meters = { processors, loop }

/** Share of the time between two readings that was busy. */
const shareBusy = (from: Utilization, to: Utilization): number =>
  (to.busy - from.busy) / Math.max(1, to.all - from.all)

/**
 * Whether this process is kept busy by requests. A caller waits for his answer now, a transfer for
 * its chain some seconds more: what nobody waits for makes way, for a burst altogether. What lasts
 * longer shares: where both want the same processor other work makes way in part, and where there
 * are processors to spare not at all.
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
   * @param clock the Environment's, in milliseconds @param meters those of a test, in place of
   *   the machine's
   */
  constructor(clock: () => number = Date.now, meters: Meters = systemMeters) {
    this.#clock = clock
    this.#meters = meters
    this.#processors = meters.processors()
    this.#loop = meters.loop()
    this.#at = clock()
  }

  /** Counts a request while it is being answered. */
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
   * A burst of requests: it goes first. True for {@link PRIORITY_MS} at a stretch at most, and for
   * half of all time.
   */
  get isBurst(): boolean {
    this.#pass()
    return this.#isMany && this.#first > 0
  }

  get isHigh(): boolean {
    // Looked at also when it is not asked for: what is said is of the last moments then.
    const isBound = this.#isBound
    return this.#isMany && (this.isBurst || isBound)
  }

  /** Whether this process, or its machine, has no time to spare. */
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

  /** What of {@link PRIORITY_MS} was used, or has come back, since it was last looked at. */
  #pass(): void {
    const now = this.#clock()
    // A clock that is set makes one burst longer or shorter, and no more.
    const passed = Math.abs(now - this.#at)
    this.#at = now
    this.#first = this.#isMany
      ? Math.max(0, this.#first - passed)
      : Math.min(PRIORITY_MS, this.#first + passed)
  }
}
