/** Normalizes a name, so that `destinationAddress` and `destination_address` are the same. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

const LETTERS_PER_SLIP = 4
const LENGTH_MAX = 64

/** Returns the known name that is most similar to an unknown one; null if none is similar. */
export function suggestName(input: string, candidates: readonly string[]): string | null {
  if (input.length > LENGTH_MAX) return null
  const wanted = plain(input)
  const same = candidates.find((name) => plain(name) === wanted)
  if (same !== undefined) return same
  let best: { name: string; slips: number } | null = null
  for (const name of candidates) {
    const slips = slipsBetween(wanted, plain(name))
    if (
      slips <= Math.max(1, Math.floor(name.length / LETTERS_PER_SLIP)) &&
      slips < Math.min(wanted.length, name.length) &&
      (best === null || slips < best.slips)
    )
      best = { name, slips }
  }
  return best?.name ?? null
}

/**
 * Returns the number of letters that were added, left out, replaced, or swapped with their
 * neighbour (optimal string alignment).
 */
function slipsBetween(a: string, b: string): number {
  let [beforeLast, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let column = 1; column <= b.length; column++) {
      const changed = (last[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1)
      let least = Math.min(changed, (last[column] as number) + 1, (next[column - 1] as number) + 1)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        least = Math.min(least, (beforeLast[column - 2] as number) + 1)
      next.push(least)
    }
    ;[beforeLast, last] = [last, next]
  }
  return last[b.length] as number
}
