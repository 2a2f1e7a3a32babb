import { Unreachable } from '../../../../signer/src/transport/client.ts'
import type { SeededRandom } from '../seeded-random.ts'
import type { Process, VirtualClock } from './virtual-clock.ts'

/** A receiver of calls; `process` is null while it is down. */
export interface Endpoint {
  readonly name: string
  readonly process: Process | null
}

/** How often messages are lost, slow or repeated, per thousand. */
export interface NetworkFaults {
  lost: number
  slow: number
  repeated: number
}
export const NO_FAULTS: NetworkFaults = { lost: 0, slow: 0, repeated: 0 }

const FAST_MS = 20
const SLOW_MS = 8000

/** Delivers calls between the processes of a simulation, with delays, losses and repetitions. */
export class Network {
  faults: NetworkFaults = NO_FAULTS
  readonly #clock: VirtualClock
  readonly #random: SeededRandom
  readonly #noted: (fault: string) => void

  constructor(clock: VirtualClock, random: SeededRandom, noted: (fault: string) => void) {
    this.#clock = clock
    this.#random = random
    this.#noted = noted
  }

  #delay(): number {
    if (!this.#random.rarely(this.faults.slow)) return 1 + this.#random.below(FAST_MS)
    this.#noted('a message was delayed')
    return this.#random.below(SLOW_MS)
  }

  /**
   * Sends a call, and returns the answer.
   * @param serve processes the call at the receiver
   * @throws Unreachable if the receiver is down, or if no answer arrives in time
   */
  call<T>(to: () => Endpoint, serve: () => Promise<T>, timeoutMs: number): Promise<T> {
    const { name } = to()
    return new Promise<T>((resolve, reject) => {
      const cancel = this.#clock.later(timeoutMs, () =>
        reject(new Unreachable(`${name} did not answer within ${timeoutMs} ms`)),
      )
      const end =
        <R>(settle: (value: R) => void) =>
        (value: R) => {
          cancel()
          settle(value)
        }
      void this.#deliver(to, serve).then(
        (answer) => {
          if (answer !== LOST) end(resolve)(answer)
        },
        (error: unknown) => end(reject)(error as Error),
      )
      if (this.#random.rarely(this.faults.repeated)) {
        this.#noted('a message was delivered twice')
        this.#clock.later(
          this.#random.below(SLOW_MS),
          () => void this.#deliver(to, serve).catch(() => {}),
        )
      }
    })
  }

  async #deliver<T>(to: () => Endpoint, serve: () => Promise<T>): Promise<T | typeof LOST> {
    const isLost = this.#random.rarely(this.faults.lost)
    const isAnswerLost = this.#random.rarely(this.faults.lost)
    await this.#clock.sleep(this.#delay())
    if (isLost) {
      this.#noted('a message was lost')
      return LOST
    }
    const { process, name } = to()
    if (!process) throw new Unreachable(`${name} is down`)
    // A separate promise, because code of a process that ends never continues.
    const answer = await this.#clock.as(process, serve)
    if (process.hasEnded) return LOST
    if (isAnswerLost) {
      this.#noted('an answer was lost')
      return LOST
    }
    await this.#clock.sleep(this.#delay())
    return answer
  }
}

const LOST = Symbol('lost')
