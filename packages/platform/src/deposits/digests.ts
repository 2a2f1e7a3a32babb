const SLOTS_FIRST = 1024
/**
 * Of the slots so many are taken at most: a look for what is not there ends at the first free one.
 */
const FILLED_MAX = 0.75
/** Of a text so many letters are read, from its end: an address's are as good as random. */
const READ = 16
const FNV_START = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * FNV-1a of the end of what stands between two places, the bits mixed once more; never 0, which is
 * a free slot.
 */
function digestOf(text: string, from: number, end: number): number {
  let hash = FNV_START
  for (let at = Math.max(from, end - READ); at < end; at++)
    hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0 || 1
}

/**
 * A set of addresses that keeps 32 bits of each: five to eleven bytes of memory an address. It
 * never says no of one that was added.
 */
export class Digests {
  #slots = new Uint32Array(SLOTS_FIRST)
  #taken = 0

  /** The bytes that it holds. */
  get bytes(): number {
    return this.#slots.byteLength
  }

  /**
   * @param lines an address each: as a whole, since a million pieces of it would be made for
   *   nothing
   */
  add(lines: string): void {
    for (let from = 0, end = 0; from < lines.length; from = end + 1) {
      end = lines.indexOf('\n', from)
      if (end === -1) end = lines.length
      if (this.#taken >= this.#slots.length * FILLED_MAX) this.#grow()
      this.#put(digestOf(lines, from, end))
    }
  }

  /**
   * Whether an address may have been added: of one that was not it says so once in four thousand
   * times where a million were.
   */
  mayHave(address: string): boolean {
    const digest = digestOf(address, 0, address.length)
    return this.#slots[this.#slotOf(digest)] === digest
  }

  /** Where a digest is, or else would be. The number of slots is a power of two. */
  #slotOf(digest: number): number {
    const last = this.#slots.length - 1
    let at = digest & last
    for (; this.#slots[at] !== 0 && this.#slots[at] !== digest;) at = (at + 1) & last
    return at
  }

  #put(digest: number): void {
    const at = this.#slotOf(digest)
    if (this.#slots[at] === digest) return
    this.#slots[at] = digest
    this.#taken++
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new Uint32Array(before.length * 2)
    this.#taken = 0
    for (const digest of before) if (digest !== 0) this.#put(digest)
  }
}
