import { randomBytes } from 'node:crypto'
import { ApproverError } from '../errors.ts'

const ATTEMPT_MS = 10 * 60_000
/** How long a person may read before they sign. */
const REVIEW_MS = 60 * 60_000
const COUNT_MAX = 50

/** Values by unguessable IDs, for a limited time. The oldest is dropped if there are too many. */
class Entries<T> {
  readonly #entries = new Map<string, { value: T; until: number }>()
  readonly #now: () => number
  readonly #validMs: number

  constructor(now: () => number, validMs: number) {
    this.#now = now
    this.#validMs = validMs
  }

  /** Stores a value and returns its ID. */
  add(value: T): string {
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= COUNT_MAX && oldest !== undefined) this.#entries.delete(oldest)
    const id = randomBytes(16).toString('base64url')
    this.#entries.set(id, { value, until: this.#now() + this.#validMs })
    return id
  }

  /** Returns a value; undefined if it is too old or unknown. */
  get(id: string): T | undefined {
    const entry = this.#entries.get(id)
    return entry === undefined || entry.until < this.#now() ? undefined : entry.value
  }

  delete(id: string): void {
    this.#entries.delete(id)
  }
}

/** What the page is about to sign, by a random ID. Each entry can be used once. */
export class Attempts<T> {
  readonly #entries: Entries<T>

  constructor(now: () => number = Date.now) {
    this.#entries = new Entries(now, ATTEMPT_MS)
  }

  /** Stores a value and returns its ID. */
  open(value: T): string {
    return this.#entries.add(value)
  }

  /** Removes and returns a value. @throws ApproverError `ATTEMPT` if it is used or too old */
  take(id: string): T {
    const value = this.#entries.get(id)
    this.#entries.delete(id)
    if (value === undefined)
      throw new ApproverError('ATTEMPT', 'this took too long, or was already used: start again')
    return value
  }
}

/** What was verified and displayed, by a random ID. Only this can be signed, and repeatedly. */
export class Reviews<T> {
  readonly #entries: Entries<T>

  constructor(now: () => number = Date.now) {
    this.#entries = new Entries(now, REVIEW_MS)
  }

  /** Stores what the page displays and returns its ID. */
  add(value: T): string {
    return this.#entries.add(value)
  }

  /** Returns what the page displayed. @throws ApproverError `REVIEW` if it is too old or unknown */
  read(id: string): T {
    const value = this.#entries.get(id)
    if (value === undefined)
      throw new ApproverError(
        'REVIEW',
        'this was displayed too long ago, so nothing was signed: read it again before you sign',
      )
    return value
  }
}

/** Refuses to sign because the platform returned something else for the page. */
export function changed(): never {
  throw new ApproverError(
    'CHANGED',
    'what you saw has changed, so nothing was signed: read it again before you sign',
  )
}
