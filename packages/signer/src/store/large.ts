/**
 * Largest number of entries of a part. A `Map` or `Set` of the JavaScript engine refuses the 2^24th
 * (V8: "Map maximum size exceeded").
 */
const PART_MAX = 2 ** 24 - 1

/** A `Map` without a limit on its number of entries: several maps, in the order of insertion. */
export class LargeMap<K, V> extends Map<K, V> {
  readonly #parts: Map<K, V>[] = [new Map()]
  readonly #partMax: number

  /** @param partMax largest number of entries of one part */
  constructor(partMax = PART_MAX) {
    super()
    this.#partMax = partMax
  }

  /** Returns the part that contains a key. Recent keys are asked for most. */
  #partOf(key: K): Map<K, V> | undefined {
    return this.#parts.findLast((part) => part.has(key))
  }

  override get size(): number {
    return this.#parts.reduce((sum, part) => sum + part.size, 0)
  }

  override get(key: K): V | undefined {
    return this.#partOf(key)?.get(key)
  }

  override has(key: K): boolean {
    return this.#partOf(key) !== undefined
  }

  override set(key: K, value: V): this {
    const existing = this.#partOf(key)
    const last = this.#parts.at(-1) as Map<K, V>
    if (existing) existing.set(key, value)
    else if (last.size < this.#partMax) last.set(key, value)
    else this.#parts.push(new Map([[key, value]]))
    return this
  }

  override delete(key: K): boolean {
    return this.#partOf(key)?.delete(key) ?? false
  }

  override clear(): void {
    this.#parts.splice(0, Infinity, new Map())
  }

  override forEach(each: (value: V, key: K, map: Map<K, V>) => void): void {
    for (const [key, value] of this) each(value, key, this)
  }

  override *entries(): MapIterator<[K, V]> {
    for (const part of this.#parts) yield* part
  }

  override *keys(): MapIterator<K> {
    for (const part of this.#parts) yield* part.keys()
  }

  override *values(): MapIterator<V> {
    for (const part of this.#parts) yield* part.values()
  }

  override [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries()
  }
}
