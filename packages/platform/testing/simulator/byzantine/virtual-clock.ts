import { AsyncLocalStorage } from 'node:async_hooks'

/** A process of the simulation. Code of an ended process never continues. */
export class Process {
  readonly name: string
  hasEnded = false

  constructor(name: string) {
    this.name = name
  }
}

interface Timer {
  atMs: number
  order: number
  process: Process | undefined
  ring(): void
}

/** What the replaced `setTimeout` returns. */
class TimerHandle {
  readonly timer: Timer

  constructor(timer: Timer) {
    this.timer = timer
  }

  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

/** Turns of the event loop without a new timer after which nothing runs any more. */
const QUIET_TURNS = 4

/**
 * Simulated time. Everything that waits (a message in transit, a timeout of the product, a retry) is
 * a timer. The clock advances to the next timer once no code runs any more, so the order of events
 * depends on the seed only. All cryptography of the nodes is synchronous, so that a few turns of the
 * event loop suffice to detect this.
 */
export class VirtualClock {
  nowMs: number
  readonly #timers: Timer[] = []
  readonly #current = new AsyncLocalStorage<Process>()
  #orders = 0
  #events = 0

  constructor(nowMs: number) {
    this.nowMs = nowMs
  }

  /** Number of timers that have fired. */
  get events(): number {
    return this.#events
  }

  /** Runs code as a process: its timers are dropped when the process ends. */
  as<T>(process: Process, run: () => T): T {
    return this.#current.run(process, run)
  }

  #add(afterMs: number, ring: () => void): Timer {
    const timer = {
      atMs: this.nowMs + Math.max(0, Math.round(afterMs)),
      order: this.#orders++,
      process: this.#current.getStore(),
      ring,
    }
    this.#timers.push(timer)
    return timer
  }

  #remove(timer: Timer): void {
    const at = this.#timers.indexOf(timer)
    if (at >= 0) this.#timers.splice(at, 1)
  }

  /** Resolves after simulated milliseconds; never, if the calling process ends before. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#add(milliseconds, resolve)
    })
  }

  /** Calls a function later. @returns a function that prevents it */
  later(milliseconds: number, ring: () => void): () => void {
    const timer = this.#add(milliseconds, ring)
    return () => this.#remove(timer)
  }

  /**
   * Replaces the global timers, which the nodes use for their timeouts and delayed writes.
   * @returns a function that restores them
   */
  replaceGlobalTimers(): () => void {
    const { setTimeout: set, clearTimeout: clear } = globalThis
    const replacement = (ring: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
      const process = this.#current.getStore()
      return new TimerHandle(
        this.#add(ms, () => (process ? this.as(process, () => ring(...args)) : ring(...args))),
      )
    }
    globalThis.setTimeout = replacement as unknown as typeof setTimeout
    globalThis.clearTimeout = ((handle: unknown) => {
      if (handle instanceof TimerHandle) this.#remove(handle.timer)
      else clear(handle as NodeJS.Timeout)
    }) as typeof clearTimeout
    return () => {
      globalThis.setTimeout = set
      globalThis.clearTimeout = clear
    }
  }

  /** Runs all events until a time, or until nothing waits any more. */
  async runUntil(untilMs: number): Promise<void> {
    for (;;) {
      await this.#settled()
      let next: Timer | undefined
      for (let at = this.#timers.length - 1; at >= 0; at--) {
        const timer = this.#timers[at]!
        if (timer.process?.hasEnded) this.#timers.splice(at, 1)
        else if (
          !next ||
          timer.atMs < next.atMs ||
          (timer.atMs === next.atMs && timer.order < next.order)
        )
          next = timer
      }
      if (!next || next.atMs > untilMs) break
      this.#remove(next)
      this.nowMs = Math.max(this.nowMs, next.atMs)
      this.#events++
      next.ring()
    }
    this.nowMs = Math.max(this.nowMs, untilMs)
  }

  /** Resolves once no code runs any more. */
  async #settled(): Promise<void> {
    for (let quiet = 0, last = this.#orders; quiet < QUIET_TURNS; quiet++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#orders !== last) quiet = 0
      last = this.#orders
    }
  }
}
