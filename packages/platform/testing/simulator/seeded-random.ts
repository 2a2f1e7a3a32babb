import { createHash } from 'node:crypto'

/**
 * All random decisions of a simulation form one list of draws, which is generated from a seed. A
 * given list is replayed unchanged, and after its end every draw is 0, which means that nothing
 * unusual happens. A failing run can therefore be replayed and shortened.
 */
export class SeededRandom {
  readonly draws: number[] = []
  readonly #draws: readonly number[] | null
  readonly #seed: string
  #block = Buffer.alloc(0)
  #blocks = 0
  #at = 0

  constructor(seed: number, draws: readonly number[] | null = null) {
    this.#seed = String(seed)
    this.#draws = draws
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

  /** Returns an integer from 0 to `below` − 1. */
  below(below: number): number {
    if (below <= 1) return 0
    const word = this.#word()
    const draw = this.#draws === null ? word % below : (this.#draws[this.draws.length] ?? 0) % below
    this.draws.push(draw)
    return draw
  }

  /** Returns true in `in1000` of a thousand cases, and never after the end of the list. */
  rarely(in1000: number): boolean {
    return in1000 > 0 && this.below(1000) >= 1000 - in1000
  }

  of<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('nothing to choose from')
    return list[this.below(list.length)] as T
  }
}

/**
 * Returns a generator of bytes and ids of an instance. They derive from the seed but are not draws,
 * because they do not affect any decision.
 */
export function bytesOf(seed: string): (length: number) => Uint8Array {
  let count = 0
  return (length) => {
    const parts: Buffer[] = []
    for (let have = 0; have < length; have += 64)
      parts.push(createHash('sha512').update(`${seed}/${count++}`).digest())
    return new Uint8Array(Buffer.concat(parts).subarray(0, length))
  }
}
