import { Refusal } from '../errors.ts'
import type { Order } from '../policy/order.ts'
import { BATCH_ITEMS_MAX } from '../sessions/batch.ts'

/** Room that a session takes until it is released. Releasing it again does nothing. */
export interface Slot {
  /**
   * @throws Refusal TOO_BUSY where there is no room for so many inputs and so many bytes; the
   *   slot stays as it was
   */
  widen(inputs: number, bytes: number): void
  release(): void
}

/**
 * The sessions that are open with each partner, those that this node leads included. A slot is
 * reserved before anything is awaited, so that requests that come at once cannot all see the same
 * free room. The limits are per partner: a hostile one cannot shut the other out.
 */
export class Slots {
  /**
   * Sessions of the engine. A session of the protocol has one for each input, and runs at most
   * `BATCH_ITEMS_MAX` of them at a time.
   */
  static readonly sessionsMax = 256
  /** Of orders, as text: one of the largest fits. */
  static readonly bytesMax = 96 * 1024 * 1024
  readonly #used = new Map<number, { sessions: number; bytes: number }>()

  /** @throws Refusal TOO_BUSY */
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
        if (!isReleased) take(0, 0)
        isReleased = true
      },
    }
  }
}

/** What orders keep in memory, in characters: nearly all of it is transactions in hex. */
export const sizeOf = (orders: readonly Order[]): number =>
  orders.reduce(
    (sum, { unsigned }) =>
      sum +
      unsigned.bytes.length +
      unsigned.inputs.reduce((inputs, { previous }) => inputs + (previous?.length ?? 0), 0),
    0,
  )

/** One engine session for each input. */
export const inputsOf = (orders: readonly Order[]): number =>
  orders.reduce((sum, { unsigned }) => sum + unsigned.inputs.length, 0)
