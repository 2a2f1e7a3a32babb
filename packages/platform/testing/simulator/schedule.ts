import { AsyncLocalStorage } from 'node:async_hooks'
import type { SeededRandom } from './seeded-random.ts'
import { digestOf } from './digest.ts'
import type { Locked } from './setup-mode.ts'

/** An operation of an instance that waits until the schedule executes it. */
interface WaitingOperation {
  actor: Actor
  label: string
  /** Digest that distinguishes the caller from others with the same operation. */
  historyHash: string
  /** Sort key: actor, operation and digest. */
  name: string
  /**
   * Executes the operation. Resolves when all its effects outside of this process have ended, with
   * a function that delivers the result.
   */
  open(): Promise<{ handOver(): void; isRefused: boolean }>
}

interface Timer {
  atMs: number
  order: number
  actor: Actor
  ring(): void
}

/**
 * One process of the simulation. Operations of a dead process are not executed, and their results
 * are not delivered.
 */
export class Actor {
  readonly name: string
  isDead = false
  readonly death: Promise<void>
  die: () => void
  /**
   * End of a pause in simulated milliseconds. Until then the process receives nothing, as if the
   * machine had stopped it.
   */
  pausedUntilMs = 0

  constructor(name: string) {
    this.name = name
    const death = Promise.withResolvers<void>()
    this.death = death.promise
    this.die = () => {
      this.isDead = true
      death.resolve()
    }
  }
}

/** Simulated time in milliseconds that each operation takes. */
const STEP_MS = 5
/**
 * Real time in milliseconds after which the schedule is reported as stuck. It is long enough for a
 * busy machine.
 */
const STUCK_MS = 120_000
/** Matches operations that do not use the database, and so never wait for a lock. */
const OUTSIDE = /^(chain|node|devnet|sign|fund)\b/
/**
 * Matches the end of a transaction, at which other transactions may get the locks that they wait
 * for. No transaction waits for the locks of a single statement before that statement has returned,
 * because every transaction that waits already waits for another one.
 */
const ENDS_TRANSACTION = /^ {2}(commit|rollback)/
/**
 * Polling interval in milliseconds to find out whether a pending operation waits for a lock. The
 * database decides this, not the elapsed time.
 */
const LOCK_POLL_MS = 4

/**
 * Executes one operation at a time in a simulation; a seeded random generator selects which. Time
 * advances only when nothing else can be executed, and a little with each operation.
 */
export class Schedule {
  nowMs: number
  readonly #beganMs: number
  /** Executed operations, in order. */
  readonly trace: string[] = []
  steps = 0
  readonly #random: SeededRandom
  readonly #gates: WaitingOperation[] = []
  readonly #timers: Timer[] = []
  /** Started operations that wait for a lock in the database. */
  readonly #held = new Set<Promise<void>>()
  /** Results that have arrived, with the step in which their operation started. */
  readonly #come: { step: number; handOver(): void }[] = []
  #orders = 0
  readonly #stories = new AsyncLocalStorage<string>()
  readonly #locked: () => Promise<Locked>
  /**
   * Server processes that wait for a lock and are stopped, so that those that came before them get
   * it first.
   */
  readonly #stopped = new Set<number>()
  /**
   * Resolves after the last operation that may release locks. Two such operations concurrently
   * would stop each other's processes in the middle.
   */
  #lastAct: Promise<unknown> = Promise.resolve()

  /**
   * Creates a schedule without operations.
   * @param locked returns the database connections that wait for a lock
   */
  constructor(random: SeededRandom, nowMs: number, locked: () => Promise<Locked>) {
    this.#random = random
    this.nowMs = nowMs
    this.#beganMs = nowMs
    this.#locked = locked
  }

  /**
   * Executes `act` when its turn comes. If its actor dies, the operation is not executed, or its
   * result is not delivered.
   */
  pauseAt<T>(actor: Actor, label: string, act: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (actor.isDead) return
      const historyHash = this.#identify(label)
      this.#gates.push({
        actor,
        label,
        historyHash,
        name: `${actor.name} ${label} ${historyHash}`,
        open: async () => {
          try {
            const answer = await act()
            return { handOver: () => void (actor.isDead || resolve(answer)), isRefused: false }
          } catch (error) {
            return {
              handOver: () => void (actor.isDead || reject(error as Error)),
              isRefused: true,
            }
          }
        },
      })
    })
  }

  /**
   * Returns a digest of this operation and all earlier operations that led to it. Later operations
   * extend this digest.
   */
  #identify(label: string): string {
    const historyHash = digestOf(`${this.#stories.getStore() ?? ''} ${label}`)
    this.#stories.enterWith(historyHash)
    return historyHash
  }

  /** Resolves after this number of simulated milliseconds, or with the signal. */
  sleep(actor: Actor, milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (actor.isDead) return
      if (signal?.aborted) return resolve()
      const timer: Timer = {
        atMs: this.nowMs + Math.max(0, milliseconds),
        order: this.#orders++,
        actor,
        ring: () => resolve(),
      }
      this.#timers.push(timer)
      signal?.addEventListener(
        'abort',
        () => {
          const at = this.#timers.indexOf(timer)
          if (at >= 0) this.#timers.splice(at, 1)
          if (!actor.isDead) resolve()
        },
        { once: true },
      )
    })
  }

  /** Drops all waiting operations of a dead actor. */
  bury(actor: Actor): void {
    actor.die()
    for (const list of [this.#gates, this.#timers] as { actor: Actor }[][]) {
      for (let at = list.length - 1; at >= 0; at--)
        if (list[at]?.actor === actor) list.splice(at, 1)
    }
  }

  /**
   * Returns the operations that can be executed now, sorted by name. If there are none, time must
   * advance.
   */
  #open(): WaitingOperation[] {
    // Sorts by name, because the order in which continuations ran in this process does not depend
    // on the seed.
    return this.#gates
      .filter(({ actor }) => actor.pausedUntilMs <= this.nowMs)
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  }

  /**
   * Executes one operation, or advances the time until one can be executed.
   * @returns false if no operation can ever be executed again
   */
  async step(untilMs: number): Promise<boolean> {
    // Timers fire even if there is always another operation. A timer that fired only in idle
    // moments would never fire in a busy simulation.
    this.#ring()
    await this.#quiet()
    const open = this.#open()
    const waiting = open.length > 0 ? open[this.#random.below(open.length)] : undefined
    if (!waiting) return this.#pass(untilMs)
    this.#gates.splice(this.#gates.indexOf(waiting), 1)
    this.steps++
    this.nowMs += STEP_MS
    this.trace.push(
      `${this.nowMs - this.#beganMs} ${waiting.actor.name} ${waiting.label} ${waiting.historyHash.slice(0, 4)}`,
    )
    await this.#through(waiting)
    // What follows from the operation is complete before the simulation looks at its callers or processes.
    await this.#quiet()
    return true
  }

  async #through(waiting: WaitingOperation): Promise<void> {
    const isOutside = OUTSIDE.test(waiting.label)
    const isEnd = ENDS_TRANSACTION.test(waiting.label)
    await this.#alone(isEnd, new Set(), async () => {
      const isRefused = await this.#opened(waiting, isOutside)
      // If no lock can have been released, the database is not queried for waiting processes; that
      // query takes longer than most statements.
      const isAnotherEnded = this.#come.some(({ step }) => step !== this.steps)
      if (isRefused || isAnotherEnded || isEnd) await this.#unlocked()
    })
  }

  /**
   * Runs `act` exclusively, and then delivers the results that arrived. A process may end while
   * another operation runs.
   */
  #alone(isFreeing: boolean, ending: ReadonlySet<number>, act: () => Promise<void>): Promise<void> {
    const done = this.#lastAct.then(async () => {
      await this.#inTurn(isFreeing, ending, act)
      await this.#handOver()
    })
    this.#lastAct = done.catch(() => undefined)
    return done
  }

  /**
   * Resolves once all operations that follow from the last one are waiting, also those that follow
   * from the end of a process.
   */
  async #quiet(): Promise<void> {
    for (let last: unknown; last !== this.#lastAct;) {
      last = this.#lastAct
      await last
      await this.settled()
    }
  }

  /**
   * Grants locks in the order in which their waiters came. PostgreSQL wakes some waiters together,
   * and which of them is first depends on the machine. Therefore all but the first are stopped, and
   * continue one after the other.
   * @param ending process ids of servers that end with this operation and must be notified
   */
  async #inTurn(
    isFreeing: boolean,
    ending: ReadonlySet<number>,
    act: () => Promise<void>,
  ): Promise<void> {
    const later =
      isFreeing && this.#held.size > 1
        ? (await this.#waiting()).slice(1).filter((pid) => !ending.has(pid))
        : []
    for (const pid of later) if (signalled(pid, 'SIGSTOP')) this.#stopped.add(pid)
    try {
      await act()
      for (const pid of later) {
        this.#go(pid)
        await this.#unlocked()
      }
    } finally {
      for (const pid of this.#stopped) this.#go(pid)
    }
  }

  /**
   * Returns the processes that wait for a lock, once each has checked for a deadlock. A process
   * that is stopped before its check would never report a deadlock, and all would wait for it.
   */
  async #waiting(): Promise<readonly number[]> {
    const began = performance.now()
    for (;;) {
      const { pids, areChecked } = await this.#locked()
      if (areChecked) return pids
      await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS))
      if (performance.now() - began > STUCK_MS)
        throw new Error(
          `the schedule is stuck: a lock wait is not checked, after ${this.trace.at(-1)}`,
        )
    }
  }

  #go(pid: number): void {
    signalled(pid, 'SIGCONT')
    this.#stopped.delete(pid)
  }

  /**
   * Resolves when all effects of an operation have arrived, or it waits for a lock.
   * @returns true if the operation was refused
   */
  async #opened({ label, open }: WaitingOperation, isOutside: boolean): Promise<boolean> {
    const step = this.steps
    let isRefused = false
    const ended: Promise<void> = open().then(({ handOver, isRefused: refused }) => {
      isRefused = refused
      this.#held.delete(ended)
      this.#come.push({ step, handOver })
    })
    this.#held.add(ended)
    const began = performance.now()
    for (;;) {
      const isHeard = await Promise.race([
        ended.then(() => true),
        new Promise<false>((resolve) => setTimeout(resolve, LOCK_POLL_MS, false)),
      ])
      if (isHeard) return isRefused
      if (!isOutside && (await this.#isHeldUp())) return isRefused
      if (performance.now() - began > STUCK_MS)
        throw new Error(`the schedule is stuck at ${label}, after ${this.trace.at(-1)}`)
    }
  }

  /**
   * Returns whether all pending operations wait for locks that only another operation of the
   * schedule can release, and have checked for deadlocks. Of two that wait for each other, the
   * later one must fail.
   */
  async #isHeldUp(): Promise<boolean> {
    const { pids, isKnot, areChecked } = await this.#locked()
    return new Set([...pids, ...this.#stopped]).size >= this.#held.size && !isKnot && areChecked
  }

  /**
   * Ends processes that hold locks, and resumes those that waited for these locks.
   * @param ending process ids of the servers that end
   */
  async freed(ending: readonly number[], end: () => Promise<void>): Promise<void> {
    await this.#alone(true, new Set(ending), async () => {
      await end()
      await this.#unlocked()
    })
  }

  async #unlocked(): Promise<void> {
    const began = performance.now()
    while (this.#held.size > 0) {
      if (await this.#isHeldUp()) break
      await Promise.race([
        ...this.#held,
        new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS)),
      ])
      if (performance.now() - began > STUCK_MS) {
        const waiting = JSON.stringify({ ...(await this.#locked()), stopped: [...this.#stopped] })
        throw new Error(
          `the schedule is stuck: ${this.#held.size} hang after ${this.trace.at(-1)}; locks: ${waiting}`,
        )
      }
    }
  }

  async #handOver(): Promise<void> {
    // The order among several operations that waited for a lock depends on the machine.
    for (let next = this.#next(); next; next = this.#next()) {
      next.handOver()
      // Waits for everything that follows from the last operation before the next one is executed.
      if (this.#come.length > 0) await this.settled()
    }
  }

  #next() {
    return this.#come.sort((a, b) => a.step - b.step).shift()
  }

  /** Resolves once all operations that follow from earlier ones are waiting. */
  async settled(): Promise<void> {
    for (let count = 0, lastCount = -1; count < 4; count++) {
      await new Promise((resolve) => setImmediate(resolve))
      const waitingCount = this.#gates.length + this.#orders
      if (waitingCount !== lastCount) count = 0
      lastCount = waitingCount
    }
  }

  /** Advances the time to the next scheduled operation. */
  #pass(untilMs: number): boolean {
    const paused = this.#gates
      .filter(({ actor }) => actor.pausedUntilMs > this.nowMs)
      .map(({ actor }) => actor.pausedUntilMs)
    const next = Math.min(
      untilMs,
      ...paused,
      ...this.#timers.map((timer) => Math.max(timer.atMs, timer.actor.pausedUntilMs)),
    )
    if (!Number.isFinite(next)) return false
    this.nowMs = Math.max(this.nowMs, next)
    this.#ring()
    return true
  }

  #ring(): void {
    const due = this.#timers
      .filter(({ atMs, actor }) => Math.max(atMs, actor.pausedUntilMs) <= this.nowMs)
      .sort((a, b) => a.atMs - b.atMs || a.order - b.order)
    for (const timer of due) {
      this.#timers.splice(this.#timers.indexOf(timer), 1)
      timer.ring()
    }
  }
}

/**
 * Sends a signal to a process.
 * @returns false if the process does not exist any more
 */
function signalled(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}
