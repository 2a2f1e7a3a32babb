import { randomBytes } from 'node:crypto'
import { ApproverError } from '../errors.ts'

const VALID_MS = 10 * 60_000
const COUNT_MAX = 50

/** What the page is about to sign, by a random ID. Each entry can be used once. */
export class Attempts<T> {
  readonly #entries = new Map<string, { value: T; until: number }>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Stores a value and returns its ID. The oldest entry is dropped if there are too many. */
  open(value: T): string {
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= COUNT_MAX && oldest !== undefined) this.#entries.delete(oldest)
    const id = randomBytes(16).toString('base64url')
    this.#entries.set(id, { value, until: this.#now() + VALID_MS })
    return id
  }

  /** Removes and returns a value. @throws ApproverError `ATTEMPT` if it is used or too old */
  take(id: string): T {
    const entry = this.#entries.get(id)
    this.#entries.delete(id)
    if (entry === undefined || entry.until < this.#now())
      throw new ApproverError('ATTEMPT', 'this took too long, or was already used: start again')
    return entry.value
  }
}
