import type { Curve } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import { RateLimit } from './rate-limit.ts'

/** A workspace's place in the queue: 1 is served next. `waiting`: number of places in total. */
export interface QueuePlace {
  place: number
  waiting: number
}

/** Maximum number of workspaces and curves that wait for a key. */
export const WAITING_MAX = 500
/**
 * Maximum number of key generations at a time, including those for the pool. With a refresh, a
 * leading node stays below the limit of its peers.
 */
export const GENERATIONS_MAX = 2
/**
 * Time in milliseconds for which a generation waits while signatures are being made, so that
 * uninterrupted signing does not prevent new keys.
 */
export const SIGNING_WAIT_MS_MAX = 2000
/** Interval in milliseconds of the checks whether a generation may start. */
const CHECK_MS = 50
/** Delay in milliseconds after a failed generation, doubled for each further failure. */
const RETRY_MS = { first: 1000, max: 16_000 }
/** Below the limits that the peers apply to generations that one node leads (`ceremony.ts`). */
const PACE = { burst: 150, everyMs: 2500 }

const CURVES = ['secp256k1', 'ed25519'] as const

interface Place<T> {
  workspace: string
  curve: Curve
  /** The assignment of a key, once a key is ready. */
  assignment: Promise<T | null> | null
}

interface Parts<T> {
  /** Number of prepared keys to keep, by curve. */
  pool: Readonly<Record<Curve, number>>
  /** Returns the number of prepared keys that may be assigned. */
  ready: (curve: Curve) => number
  /** Returns whether a key was chosen for the workspace earlier, so that it needs no other one. */
  isPaired: (workspace: string, curve: Curve) => boolean
  /**
   * Assigns a prepared key; the key is no longer ready when the call returns its promise. Returns
   * null if the peers accept none of the prepared keys, which are then no longer ready.
   */
  assign: (workspace: string, curve: Curve) => Promise<T | null>
  /** Generates a key, which is ready afterwards. */
  generate: (curve: Curve) => Promise<void>
  /** Returns whether this node can generate keys now. */
  isAble: () => boolean
  /** Returns whether a signature is being made at this node. */
  isSigning: () => boolean
  /** Monotonic clock in milliseconds. */
  now: () => number
  /** Calls a function after some milliseconds. */
  later: (run: () => void, ms: number) => void
  log: Log
}

/**
 * Workspaces that wait for a key, in the order of their first request, and the generation of keys
 * for them and for the pool. Every generated key joins the pool, from which the queue is served, so
 * a crash loses at most the order: a place is created again by the next request for it.
 */
export class KeyQueue<T> {
  readonly #parts: Parts<T>
  readonly #places = new Map<string, Place<T>>()
  readonly #generating: Record<Curve, number> = { secp256k1: 0, ed25519: 0 }
  readonly #pace: RateLimit
  #failures = 0
  #retryAt = 0
  /** Time since which the next generation waits for signatures to end. */
  #blockedSince: number | null = null
  #isChecking = false
  #isStopped = false

  constructor(parts: Parts<T>) {
    this.#parts = parts
    this.#pace = new RateLimit({ ...PACE, now: parts.now })
  }

  /** Number of places without a key. */
  get waiting(): number {
    return this.#unserved().length
  }

  get generating(): number {
    return this.#generating.secp256k1 + this.#generating.ed25519
  }

  /**
   * Returns the result of the assignment if a key is ready, and the place otherwise. Repeated calls
   * for a workspace and curve have the same place.
   * @throws Refusal TOO_BUSY if the queue is full, and the errors of the assignment
   */
  async request(workspace: string, curve: Curve): Promise<T | QueuePlace> {
    const name = JSON.stringify([workspace, curve])
    let place = this.#places.get(name)
    if (!place) {
      if (this.#places.size >= WAITING_MAX)
        throw new Refusal('TOO_BUSY', `${WAITING_MAX} keys are waited for, which is the maximum`)
      place = { workspace, curve, assignment: null }
      this.#places.set(name, place)
      this.serve()
    }
    // After a refusal by the peers, the next prepared key may be on its way to the workspace.
    while (place.assignment) {
      const result = await place.assignment
      if (result !== null) return result
    }
    const unserved = this.#unserved()
    return { place: unserved.indexOf(place) + 1, waiting: unserved.length }
  }

  /** Assigns keys that are ready, and starts the generations that are needed and allowed now. */
  serve(): void {
    if (this.#isStopped) return
    const { ready, isPaired } = this.#parts
    const free = { secp256k1: ready('secp256k1'), ed25519: ready('ed25519') }
    for (const [name, place] of this.#places) {
      const { workspace, curve, assignment } = place
      if (assignment) continue
      if (isPaired(workspace, curve)) this.#assign(name, place)
      else if (free[curve]-- > 0) this.#assign(name, place)
    }
    while (this.#generateNext());
  }

  stop(): void {
    this.#isStopped = true
  }

  #unserved(): Place<T>[] {
    return [...this.#places.values()].filter(({ assignment }) => !assignment)
  }

  /** A place whose assignment fails is removed; the next request for it creates it again. */
  #assign(name: string, place: Place<T>): void {
    const { workspace, curve } = place
    place.assignment = this.#parts
      .assign(workspace, curve)
      .then(
        (result) => {
          // Without an accepted key, the workspace keeps its place and waits for the next key.
          if (result === null) place.assignment = null
          else this.#places.delete(name)
          return result
        },
        (error: unknown) => {
          this.#places.delete(name)
          throw error
        },
      )
      .finally(() => {
        this.serve()
      })
    place.assignment.catch((error: unknown) => {
      if (!this.#isStopped)
        this.#parts.log('warn', 'a key could not be assigned to a workspace', {
          workspace,
          curve,
          reason: reason(error),
        })
    })
  }

  /** Returns whether a generation was started. */
  #generateNext(): boolean {
    const { isAble, now } = this.#parts
    if (this.generating >= GENERATIONS_MAX || !isAble()) return false
    const curve = this.#next()
    if (curve === null) {
      this.#blockedSince = null
      return false
    }
    if (now() < this.#retryAt) return this.#check(this.#retryAt - now())
    if (this.#isBlocked()) return this.#check(CHECK_MS)
    if (!this.#pace.take()) return this.#check(PACE.everyMs)
    this.#blockedSince = null
    this.#generating[curve]++
    void this.#generate(curve)
    return true
  }

  async #generate(curve: Curve): Promise<void> {
    const { generate, now, log } = this.#parts
    try {
      await generate(curve)
      this.#failures = 0
    } catch (error) {
      this.#retryAt = now() + Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** this.#failures++)
      if (!this.#isStopped)
        log('warn', 'key generation failed; it is retried', { reason: reason(error) })
    } finally {
      this.#generating[curve]--
      this.serve()
    }
  }

  /**
   * Returns the curve of the key to generate next: that of the first place for which no key is ready
   * or being generated, otherwise the one whose pool lacks a key; null if neither exists.
   */
  #next(): Curve | null {
    const { ready, pool } = this.#parts
    const available = { secp256k1: 0, ed25519: 0 }
    for (const curve of CURVES) available[curve] = ready(curve) + this.#generating[curve]
    for (const { curve } of this.#unserved()) {
      if (available[curve] === 0) return curve
      available[curve]--
    }
    return (
      CURVES.filter((curve) => available[curve] < pool[curve]).sort(
        (a, b) => available[a] - available[b],
      )[0] ?? null
    )
  }

  /** Returns whether the next generation waits because signatures are being made. */
  #isBlocked(): boolean {
    const { isSigning, now } = this.#parts
    if (!isSigning()) return false
    this.#blockedSince ??= now()
    return now() - this.#blockedSince < SIGNING_WAIT_MS_MAX
  }

  /** Checks again after some milliseconds. */
  #check(ms: number): false {
    if (this.#isChecking) return false
    this.#isChecking = true
    this.#parts.later(() => {
      this.#isChecking = false
      this.serve()
    }, ms)
    return false
  }
}
