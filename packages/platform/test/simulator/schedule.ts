import { AsyncLocalStorage } from 'node:async_hooks'
import type { SeededRandom } from './seeded-random.ts'
import { digestOf } from './digest.ts'
import type { Locked } from './setup-mode.ts'

/** What an instance asks of the world: it waits until the schedule lets it through. */
interface Gate {
  actor: Actor
  label: string
  /** Tells who asks from others that ask the same. */
  story: string
  /** All of that, by which gates are sorted. */
  name: string
  /**
   * Resolves when all that it set off outside of this process has come back, with what hands the
   * answer over.
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
 * One process of the simulation. What is asked by the dead is not done, and no answer reaches them.
 */
export class Actor {
  readonly name: string
  isDead = false
  readonly death: Promise<void>
  die: () => void
  /**
   * It hears nothing until then, in simulated milliseconds: a process that the machine has stopped.
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

/** What each thing that happens takes, in simulated time. */
const STEP_MS = 5
/**
 * How long something may really take before the schedule is said to be stuck, also on a machine
 * that has much else to do.
 */
const STUCK_MS = 120_000
/** What is asked of others than the database, which may wait for no lock. */
const OUTSIDE = /^(chain|node|devnet|sign|fund)\b/
/**
 * Matches the end of a transaction, at which other transactions may get the locks that they wait
 * for. No transaction waits for the locks of a single statement before that statement has returned,
 * because every transaction that waits already waits for another one.
 */
const ENDS_TRANSACTION = /^ {2}(commit|rollback)/
/**
 * Interval of the questions whether what has not come back waits for a lock. The database decides,
 * and not the time that has passed.
 */
const LOCK_POLL_MS = 4

/**
 * One thing at a time happens in the world of a simulation, and chance says which. Time passes only
 * when nothing else can happen, and a little with each thing.
 */
export class Schedule {
  nowMs: number
  readonly #beganMs: number
  /** What happened, in order. */
  readonly trace: string[] = []
  steps = 0
  readonly #chance: SeededRandom
  readonly #gates: Gate[] = []
  readonly #timers: Timer[] = []
  /** Opened, and held up by a lock in the database. */
  readonly #held = new Set<Promise<void>>()
  /** Answers that have come, by when was asked. */
  readonly #come: { step: number; handOver(): void }[] = []
  #orders = 0
  readonly #stories = new AsyncLocalStorage<string>()
  readonly #locked: () => Promise<Locked>
  /**
   * Servers' processes that wait for a lock and stand still, so that who came before them has it
   * first.
   */
  readonly #stopped = new Set<number>()
  /**
   * Ends with the last act that may let locks go. Two at once would stop each other's processes, in
   * the middle of something.
   */
  #lastAct: Promise<unknown> = Promise.resolve()

  /** @param locked which of the database's connections wait for a lock */
  constructor(chance: SeededRandom, nowMs: number, locked: () => Promise<Locked>) {
    this.#chance = chance
    this.nowMs = nowMs
    this.#beganMs = nowMs
    this.#locked = locked
  }

  /**
   * Does `act` when its turn comes. It dies with its actor: then it is not done, or its answer is
   * not heard.
   */
  gate<T>(actor: Actor, label: string, act: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (actor.isDead) return
      const story = this.#told(label)
      this.#gates.push({
        actor,
        label,
        story,
        name: `${actor.name} ${label} ${story}`,
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
  #told(label: string): string {
    const story = digestOf(`${this.#stories.getStore() ?? ''} ${label}`)
    this.#stories.enterWith(story)
    return story
  }

  /** Resolves after so many simulated milliseconds, or with the signal. */
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

  /** Nothing that it asked happens any more. */
  bury(actor: Actor): void {
    actor.die()
    for (const list of [this.#gates, this.#timers] as { actor: Actor }[][]) {
      for (let at = list.length - 1; at >= 0; at--)
        if (list[at]?.actor === actor) list.splice(at, 1)
    }
  }

  /** What can happen now, by name; empty: time has to pass. */
  #open(): Gate[] {
    // By name: which of several continuations came first in this process is no matter of the seed.
    return this.#gates
      .filter(({ actor }) => actor.pausedUntilMs <= this.nowMs)
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  }

  /**
   * Lets one thing happen, or time pass until something may. False: nothing will ever happen again.
   */
  async step(untilMs: number): Promise<boolean> {
    // Also while there is always something to do: a timer that rang only in idle moments would
    // never ring in a busy world.
    this.#ring()
    await this.#quiet()
    const open = this.#open()
    const gate = open.length > 0 ? open[this.#chance.below(open.length)] : undefined
    if (!gate) return this.#pass(untilMs)
    this.#gates.splice(this.#gates.indexOf(gate), 1)
    this.steps++
    this.nowMs += STEP_MS
    this.trace.push(
      `${this.nowMs - this.#beganMs} ${gate.actor.name} ${gate.label} ${gate.story.slice(0, 4)}`,
    )
    await this.#through(gate)
    return true
  }

  async #through(gate: Gate): Promise<void> {
    const isOutside = OUTSIDE.test(gate.label)
    const isEnd = ENDS_TRANSACTION.test(gate.label)
    await this.#alone(isEnd, new Set(), async () => {
      const isRefused = await this.#opened(gate, isOutside)
      // If no lock can have been released, the database is not queried for waiting processes; that
      // query takes longer than most statements.
      const isAnotherEnded = this.#come.some(({ step }) => step !== this.steps)
      if (isRefused || isAnotherEnded || isEnd) await this.#unlocked()
    })
  }

  /**
   * Does `act`, and hands over what has come by it, when nothing else does so. A process may end
   * while another thing happens.
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
   * Everything that follows from what has happened has been asked, also from the end of processes
   * that ended meanwhile.
   */
  async #quiet(): Promise<void> {
    for (let last: unknown; last !== this.#lastAct;) {
      last = this.#lastAct
      await last
      await this.settled()
    }
  }

  /**
   * Where locks go for which several wait, they have them in the order in which they came:
   * PostgreSQL wakes some of them together, and which of those is the first is a matter of this
   * machine. So all but the first stand still, and go on one after the other.
   * @param ending servers' processes that end by it, which have to hear so
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
   * Who waits for a lock, once each has checked for a deadlock: one that stood still before it has
   * would never say so, and all would wait for that.
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

  /** Resolves when all that a gate set off has come, or waits for a lock. True: it was refused. */
  async #opened({ label, open }: Gate, isOutside: boolean): Promise<boolean> {
    const step = this.steps
    let isRefused = false
    const heard: Promise<void> = open().then(({ handOver, isRefused: refused }) => {
      isRefused = refused
      this.#held.delete(heard)
      this.#come.push({ step, handOver })
    })
    this.#held.add(heard)
    const began = performance.now()
    for (;;) {
      const isHeard = await Promise.race([
        heard.then(() => true),
        new Promise<false>((resolve) => setTimeout(resolve, LOCK_POLL_MS, false)),
      ])
      if (isHeard) return isRefused
      if (!isOutside && (await this.#isHeldUp())) return isRefused
      if (performance.now() - began > STUCK_MS)
        throw new Error(`the schedule is stuck at ${label}, after ${this.trace.at(-1)}`)
    }
  }

  /**
   * Whether all that is under way waits for locks that only something else of the schedule can let
   * go, and has checked for deadlocks: of two that wait for each other, the one that came last is
   * to fail.
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
    // Which of several that a lock held up came first is a matter of this machine.
    for (let next = this.#next(); next; next = this.#next()) {
      next.handOver()
      // What follows from the last is waited for before the next thing happens.
      if (this.#come.length > 0) await this.settled()
    }
  }

  #next() {
    return this.#come.sort((a, b) => a.step - b.step).shift()
  }

  /** Everything that follows from what has happened has been asked. */
  async settled(): Promise<void> {
    for (let count = 0, known = -1; count < 4; count++) {
      await new Promise((resolve) => setImmediate(resolve))
      const asked = this.#gates.length + this.#orders
      if (asked !== known) count = 0
      known = asked
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

/** False: there is no such process any more. */
function signalled(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}
