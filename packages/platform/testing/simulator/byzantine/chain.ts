import { exclusive } from '@custody/chains'
import { registry } from '../../../../signer/testing/signer-cluster.ts'
import type { SeededRandom } from '../seeded-random.ts'
import type { Known } from './signatures.ts'
import type { VirtualClock } from './virtual-clock.ts'

const BLOCK_MS = 12_000

/**
 * The chains of a run, as far as they decide which transactions confirm: nonces, spent and existing
 * outputs, expiries. A block is final. Of transactions that exclude each other, the seed chooses one.
 */
export class Chain {
  readonly #clock: VirtualClock
  readonly #random: SeededRandom
  readonly #nonces = new Map<string, bigint>()
  readonly #coins = new Set<string>()
  readonly #mempool = new Set<Known>()
  readonly confirmed = new Set<Known>()
  onConfirmed: (known: Known) => void = () => {}

  constructor(clock: VirtualClock, random: SeededRandom) {
    this.#clock = clock
    this.#random = random
  }

  addCoin(outpoint: string): void {
    this.#coins.add(outpoint)
  }

  startAccount(network: string, address: string, nonce: bigint): void {
    this.#nonces.set(`${network} ${address}`, nonce)
  }

  /** Returns the nonce that the chain accepts next. */
  nextNonce(network: string, address: string): bigint {
    return this.#nonces.get(`${network} ${address}`) ?? 0n
  }

  hasCoin(outpoint: string): boolean {
    return this.#coins.has(outpoint)
  }

  isExpired({ decoded }: Known): boolean {
    const end = decoded.valid_until
    return end !== undefined && Number(end) * 1000 < this.#clock.nowMs
  }

  /** Whether a transaction is confirmed, or may confirm from now on. */
  mayConfirm(known: Known): boolean {
    if (this.confirmed.has(known)) return true
    const { decoded } = known
    if (this.isExpired(known)) return false
    if (decoded.nonce !== null)
      return decoded.nonce >= this.nextNonce(decoded.network, decoded.from[0]!)
    return decoded.consumes.every((outpoint) => this.#coins.has(outpoint))
  }

  /** Whether two transactions can both confirm. */
  canBothConfirm(one: Known, two: Known): boolean {
    return (
      one !== two &&
      !exclusive(registry, one.decoded, two.decoded) &&
      this.mayConfirm(one) &&
      this.mayConfirm(two)
    )
  }

  publish(known: Known): void {
    if (known.signedAtMs === null) throw new Error('an unsigned transaction was published')
    this.#mempool.add(known)
  }

  /** Makes blocks for the rest of the run. */
  async mine(): Promise<void> {
    for (;;) {
      await this.#clock.sleep(BLOCK_MS)
      this.#block()
    }
  }

  #block(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const { decoded } = next
      if (decoded.nonce === null)
        for (const outpoint of decoded.consumes) this.#coins.delete(outpoint)
      else this.#nonces.set(`${decoded.network} ${decoded.from[0]!}`, decoded.nonce + 1n)
      this.#mempool.delete(next)
      this.confirmed.add(next)
      this.onConfirmed(next)
    }
    for (const known of this.#mempool) if (!this.mayConfirm(known)) this.#mempool.delete(known)
  }

  /** Draws a transaction that the next place of a block can take. */
  #next(): Known | undefined {
    const ready = [...this.#mempool].filter(
      (known) =>
        this.mayConfirm(known) &&
        (known.decoded.nonce === null ||
          known.decoded.nonce === this.nextNonce(known.decoded.network, known.decoded.from[0]!)),
    )
    return ready.length === 0 ? undefined : this.#random.of(ready)
  }
}
