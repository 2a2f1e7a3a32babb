const SLOTS_FIRST = 1024
/** Maximum share of used slots; a search for a missing address ends at the first free slot. */
const FILLED_MAX = 0.75
/**
 * Number of characters that are hashed, counted from the end of an address, where they are
 * practically random.
 */
const READ = 16
const FNV_START = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * Returns an FNV-1a hash of the last characters between two positions, with the bits mixed once
 * more. Never 0, which marks a free slot.
 */
function digestOf(text: string, from: number, end: number): number {
  let hash = FNV_START
  for (let at = Math.max(from, end - READ); at < end; at++)
    hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0 || 1
}

/**
 * A set of addresses that stores 32 bits per address and needs five to eleven bytes of memory for
 * each. It has false positives but no false negatives.
 */
export class Digests {
  #slots = new Uint32Array(SLOTS_FIRST)
  #taken = 0

  /** Memory used by the slots, in bytes. */
  get bytes(): number {
    return this.#slots.byteLength
  }

  /**
   * Adds addresses.
   * @param lines one address per line; passed as one string to avoid creating a million short
   *   strings
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
   * Whether an address may have been added. With a million addresses, about one in four thousand
   * unknown addresses is a false positive.
   */
  mayHave(address: string): boolean {
    const digest = digestOf(address, 0, address.length)
    return this.#slots[this.#slotOf(digest)] === digest
  }

  /**
   * Returns the slot that holds a digest, or the free slot for it. The number of slots is a power
   * of two.
   */
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
