import { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import { LEAP_MAX_MS } from '../store/record.ts'
import { PING } from './calls.ts'
import type { Peers } from './peers.ts'

const PING_TIMEOUT_MS = 1500
/** Absent in responses of earlier versions. */
const answerSchema = z.object({ clock: z.number().optional() })

/**
 * A clock that leaps ahead is trusted if a peer's host reports the same time, which is the case
 * after a node was off for a while. Until then no request is evaluated, because with the earlier
 * time old requests would seem recent.
 */
export class HostClock {
  readonly #parts: { store: Store; peers: Peers; log: Log }
  #asking: Promise<void> | null = null
  #isAlerted = false

  constructor(parts: { store: Store; peers: Peers; log: Log }) {
    this.#parts = parts
    parts.peers.beforeServing = () => this.settle()
  }

  /**
   * Confirms the clock, if it is doubted.
   * @throws Refusal CLOCK_DOUBTED
   */
  async settle(): Promise<void> {
    if (this.#parts.store.record.doubted() === null) return
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null
    })
    await this.#asking
  }

  async #ask(): Promise<void> {
    const { store, peers, log } = this.#parts
    const pending = peers.nodes.map(
      async (node) =>
        answerSchema.parse(await peers.call(node, PING, {}, { timeout: PING_TIMEOUT_MS })).clock,
    )
    const offsets = (await Promise.allSettled(pending)).flatMap((answer) =>
      answer.status === 'fulfilled' ? [answer.value] : [],
    )
    const doubted = store.record.doubted()
    if (doubted === null) return
    const ahead = `${Math.round((doubted - store.clock()) / 1000)} s`
    // A peer of an earlier version does not report its clock, and must not stop this node.
    if (offsets.some((clock) => clock === undefined || clock >= doubted - LEAP_MAX_MS)) {
      store.record.confirm()
      this.#isAlerted = false
      log(
        'warn',
        'the clock advanced by more than the elapsed time, and a peer reports the same time',
        {
          ahead,
        },
      )
      return
    }
    const why =
      offsets.length === 0
        ? 'no peer can be queried to confirm it'
        : 'no peer reports the same time: correct it by NTP'
    if (!this.#isAlerted) log('alert', 'the clock of this host is not trusted', { ahead, why })
    this.#isAlerted = true
    throw new Refusal(
      'CLOCK_DOUBTED',
      `The clock of this host jumped ahead by ${ahead}, and ${why}`,
    )
  }
}
