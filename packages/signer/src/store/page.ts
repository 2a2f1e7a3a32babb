/** Limits of a page. `size` is in the unit in which the caller measures items. */
export interface PageLimits {
  /** Maximum number of entries that are read for a page. */
  readonly entries: number
  /** Maximum size of the items together. A page always contains one item, whatever its size. */
  readonly size: number
}

/** Part of what a node has recorded, in the order of the record. */
export interface Page<Item> {
  readonly items: Item[]
  /** Height of the last entry that was read; null if the page reaches the end of the list. */
  readonly to: number | null
}

/**
 * Returns a page of what was recorded above a height.
 * @param entries in ascending order of their heights
 * @param after height in the record; the page begins with the first entry above it
 * @param heightOf returns the height of an entry
 * @param itemOf returns the item of an entry and its size; null: the page does not contain the entry
 */
export function pageAbove<Entry, Item>(
  entries: readonly Entry[],
  after: number,
  heightOf: (entry: Entry) => number,
  limits: PageLimits,
  itemOf: (entry: Entry) => { item: Item; size: number } | null,
): Page<Item> {
  const start = firstAbove(entries, after, heightOf)
  const items: Item[] = []
  let size = 0
  for (let at = start; at < entries.length; at++) {
    const isFull = at - start >= limits.entries
    const read = isFull ? null : itemOf(entries[at]!)
    const isTooLarge = read !== null && items.length > 0 && size + read.size > limits.size
    if (isFull || isTooLarge) return { items, to: heightOf(entries[at - 1]!) }
    if (read === null) continue
    size += read.size
    items.push(read.item)
  }
  return { items, to: null }
}

/** Returns the index of the first entry above a height, by bisection. */
function firstAbove<Entry>(
  entries: readonly Entry[],
  height: number,
  heightOf: (entry: Entry) => number,
): number {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (heightOf(entries[middle]!) <= height) low = middle + 1
    else high = middle
  }
  return low
}
