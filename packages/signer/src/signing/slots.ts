import { Refusal } from '../errors.ts'
import type { Order } from '../policy/order.ts'
import { BATCH_ITEMS_MAX } from '../sessions/batch.ts'

/** Capacity that a session uses until it is released. Releasing it again does nothing. */
export interface Slot {
  /**
   * Increases the slot.
   * @throws Refusal TOO_BUSY if there is no capacity for so many inputs and bytes; the slot is
   *   unchanged then
   */
  widen(inputs: number, bytes: number): void
  release(): void
}

/**
 * The open sessions with each partner, including those that this node leads. A slot is reserved
 * before the first await, so that concurrent requests cannot all use the same free capacity. The
 * limits are per partner, so a hostile partner cannot exclude the other one.
 */
export class Slots {
  /**
   * Maximum number of engine sessions. A session of the protocol has one for each input, and runs
   * at most `BATCH_ITEMS_MAX` of them at a time.
   */
  static readonly sessionsMax = 256
  /** Maximum size of orders as text; one of the largest orders fits. */
  static readonly bytesMax = 96 * 1024 * 1024
  readonly #used = new Map<number, { sessions: number; bytes: number }>()
  readonly #now: () => number
  /** When the last session ended. */
  #endedAt = -Infinity

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns whether any session is open, or was open within the given milliseconds. */
  areInUse(withinMs = 0): boolean {
    const isOpen = [...this.#used.values()].some(({ sessions }) => sessions > 0)
    return isOpen || this.#now() - this.#endedAt < withinMs
  }

  /**
   * Reserves a slot.
   * @throws Refusal TOO_BUSY
   */
  reserve(partner: number): Slot {
    const used = this.#used.get(partner) ?? { sessions: 0, bytes: 0 }
    this.#used.set(partner, used)
    const mine = { sessions: 0, bytes: 0 }
    const take = (sessions: number, bytes: number): void => {
      if (
        used.sessions - mine.sessions + sessions > Slots.sessionsMax ||
        used.bytes - mine.bytes + bytes > Slots.bytesMax
      ) {
        throw new Refusal('TOO_BUSY', `Too many sessions with node ${partner} are open`, {
          node: partner,
        })
      }
      used.sessions += sessions - mine.sessions
      used.bytes += bytes - mine.bytes
      Object.assign(mine, { sessions, bytes })
    }
    take(1, 0)
    let isReleased = false
    return {
      widen: (inputs, bytes) => {
        if (!isReleased) take(Math.min(Math.max(inputs, 1), BATCH_ITEMS_MAX), bytes)
      },
      release: () => {
        if (isReleased) return
        take(0, 0)
        isReleased = true
        this.#endedAt = this.#now()
      },
    }
  }
}

/** Returns the memory that orders use, in characters; nearly all of it is transactions in hex. */
export const sizeOf = (orders: readonly Order[]): number =>
  orders.reduce(
    (sum, { unsigned }) =>
      sum +
      unsigned.bytes.length +
      unsigned.inputs.reduce((inputs, { previous }) => inputs + (previous?.length ?? 0), 0),
    0,
  )

/** Returns the number of engine sessions, one for each input. */
export const inputsOf = (orders: readonly Order[]): number =>
  orders.reduce((sum, { unsigned }) => sum + unsigned.inputs.length, 0)
