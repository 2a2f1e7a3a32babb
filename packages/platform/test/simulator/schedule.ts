import type { Chance } from './chance.ts'

/** What an instance asks of the world: it waits until the schedule lets it through. */
interface Gate {
  actor: Actor
  label: string
  /** Resolves when all that it set off outside of this process has come back. */
  open(): Promise<void>
}

interface Timer { atMs: number; order: number; actor: Actor; ring(): void }

/** One process of the simulation. What is asked by the dead is not done, and no answer reaches them. */
export class Actor {
  readonly name: string
  isDead = false
  readonly death: Promise<void>
  die: () => void
  /** It hears nothing until then, in simulated milliseconds: a process that the machine has stopped. */
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
/** How long something may really take before the schedule is said to be stuck. */
const STUCK_MS = 20_000
/** What is asked of others than the database, which may wait for no lock. */
const OUTSIDE = /^(chain|node|devnet|sign|fund)\b/
/** What has not come back by then may wait for a lock that another instance holds. */
const LOCKED_AFTER_MS = 4
/** More than the database takes to see that two wait for each other (`deadlock_timeout` of ground.ts). */
const DEADLOCK_MS = 8

/**
 * One thing at a time happens in the world of a simulation, and chance says which. Time passes only when nothing else can happen,
 * and a little with each thing.
 */
export class Schedule {
  nowMs: number
  readonly #beganMs: number
  /** What happened, in order. */
  readonly trace: string[] = []
  steps = 0
  readonly #chance: Chance
  readonly #gates: Gate[] = []
  readonly #timers: Timer[] = []
  /** Opened, and held up by a lock in the database. */
  readonly #held = new Set<Promise<void>>()
  #orders = 0
  readonly #lockedCount: () => Promise<number>

  /** @param lockedCount how many of the database's connections wait for a lock */
  constructor(chance: Chance, nowMs: number, lockedCount: () => Promise<number>) {
    this.#chance = chance
    this.nowMs = nowMs
    this.#beganMs = nowMs
    this.#lockedCount = lockedCount
  }

  /** Does `act` when its turn comes. It dies with its actor: then it is not done, or its answer is not heard. */
  gate<T>(actor: Actor, label: string, act: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (actor.isDead) return
      this.#gates.push({
        actor, label,
        open: async () => {
          try {
            const answer = await act()
            if (!actor.isDead) resolve(answer)
          } catch (error) {
            if (!actor.isDead) reject(error as Error)
          }
        },
      })
    })
  }

  /** Resolves after so many simulated milliseconds, or with the signal. */
  sleep(actor: Actor, milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (actor.isDead) return
      if (signal?.aborted) return resolve()
      const timer: Timer = { atMs: this.nowMs + Math.max(0, milliseconds), order: this.#orders++, actor, ring: () => resolve() }
      this.#timers.push(timer)
      signal?.addEventListener('abort', () => {
        const at = this.#timers.indexOf(timer)
        if (at >= 0) this.#timers.splice(at, 1)
        if (!actor.isDead) resolve()
      }, { once: true })
    })
  }

  /** Nothing that it asked happens any more. */
  bury(actor: Actor): void {
    actor.die()
    for (const list of [this.#gates, this.#timers] as { actor: Actor }[][]) {
      for (let at = list.length - 1; at >= 0; at--) if (list[at]?.actor === actor) list.splice(at, 1)
    }
  }

  /** What can happen now, by name; empty: time has to pass. */
  #open(): Gate[] {
    // By name: which of several continuations came first in this process is no matter of the seed.
    const name = ({ actor, label }: Gate) => `${actor.name} ${label}`
    return this.#gates.filter(({ actor }) => actor.pausedUntilMs <= this.nowMs).sort((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0))
  }

  /** Lets one thing happen, or time pass until something may. False: nothing will ever happen again. */
  async step(untilMs: number): Promise<boolean> {
    // Also while there is always something to do: a timer that rang only in idle moments would never ring in a busy world.
    this.#ring()
    await this.settled()
    const open = this.#open()
    const gate = open.length > 0 ? open[this.#chance.below(open.length)] : undefined
    if (!gate) return this.#pass(untilMs)
    this.#gates.splice(this.#gates.indexOf(gate), 1)
    this.steps++
    this.nowMs += STEP_MS
    this.trace.push(`${this.nowMs - this.#beganMs} ${gate.actor.name} ${gate.label}`)
    await this.#through(gate.open(), OUTSIDE.test(gate.label))
    return true
  }

  async #through(work: Promise<void>, isOutside: boolean): Promise<void> {
    const done: Promise<void> = work.finally(() => this.#held.delete(done))
    this.#held.add(done)
    const began = performance.now()
    for (;;) {
      const isDone = await Promise.race([
        done.then(() => true), new Promise<false>((resolve) => setTimeout(resolve, LOCKED_AFTER_MS, false)),
      ])
      if (isDone) break
      if (!isOutside && await this.#lockedCount() >= this.#held.size) {
        // Two may wait for each other: which of them the database ends is the one that came last, once the first has looked.
        await new Promise((resolve) => setTimeout(resolve, DEADLOCK_MS))
        if (await this.#lockedCount() >= this.#held.size) return
      }
      if (performance.now() - began > STUCK_MS) throw new Error(`the schedule is stuck at ${this.trace.at(-1)}`)
    }
    await this.#freed()
  }

  /** What a lock held up may go on by now. */
  async #freed(): Promise<void> {
    const began = performance.now()
    while (this.#held.size > 0) {
      const before = this.#held.size
      if (await this.#lockedCount() >= before) return
      await Promise.race([...this.#held, new Promise((resolve) => setTimeout(resolve, LOCKED_AFTER_MS))])
      if (performance.now() - began > STUCK_MS) throw new Error(`the schedule is stuck: ${before} hang after ${this.trace.at(-1)}`)
    }
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

  /** Time goes on to whatever is next. */
  #pass(untilMs: number): boolean {
    const paused = this.#gates.filter(({ actor }) => actor.pausedUntilMs > this.nowMs).map(({ actor }) => actor.pausedUntilMs)
    const next = Math.min(untilMs, ...paused, ...this.#timers.map((timer) => Math.max(timer.atMs, timer.actor.pausedUntilMs)))
    if (!Number.isFinite(next)) return false
    this.nowMs = Math.max(this.nowMs, next)
    this.#ring()
    return true
  }

  #ring(): void {
    const due = this.#timers.filter(({ atMs, actor }) => Math.max(atMs, actor.pausedUntilMs) <= this.nowMs)
      .sort((a, b) => a.atMs - b.atMs || a.order - b.order)
    for (const timer of due) {
      this.#timers.splice(this.#timers.indexOf(timer), 1)
      timer.ring()
    }
  }
}
