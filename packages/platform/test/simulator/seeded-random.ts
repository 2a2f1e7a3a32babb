import { createHash } from 'node:crypto'

/**
 * Everything that a simulation leaves to chance is one list of draws. A seed makes the list; a
 * given list is played as it is, and where it ends every draw is 0, by which nothing out of the
 * ordinary happens. So a failing run is replayed, and made short.
 */
export class SeededRandom {
  readonly draws: number[] = []
  readonly #given: readonly number[] | null
  readonly #seed: string
  #block = Buffer.alloc(0)
  #blocks = 0
  #at = 0

  constructor(seed: number, given: readonly number[] | null = null) {
    this.#seed = String(seed)
    this.#given = given
  }

  #word(): number {
    if (this.#at + 4 > this.#block.length) {
      this.#block = createHash('sha512')
        .update(`${this.#seed}/${this.#blocks++}`)
        .digest()
      this.#at = 0
    }
    this.#at += 4
    return this.#block.readUInt32BE(this.#at - 4)
  }

  /** A whole number from 0 to `below` − 1. */
  below(below: number): number {
    if (below <= 1) return 0
    const word = this.#word()
    const drawn =
      this.#given === null ? word % below : (this.#given[this.draws.length] ?? 0) % below
    this.draws.push(drawn)
    return drawn
  }

  /** True in `in1000` of a thousand cases; never where the list has ended. */
  rarely(in1000: number): boolean {
    return in1000 > 0 && this.below(1000) >= 1000 - in1000
  }

  of<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('nothing to choose from')
    return list[this.below(list.length)] as T
  }
}

/** Bytes and ids of an instance: of the seed, yet no draws, as nothing is chosen by them. */
export function bytesOf(seed: string): (length: number) => Uint8Array {
  let count = 0
  return (length) => {
    const parts: Buffer[] = []
    for (let have = 0; have < length; have += 64)
      parts.push(createHash('sha512').update(`${seed}/${count++}`).digest())
    return new Uint8Array(Buffer.concat(parts).subarray(0, length))
  }
}
