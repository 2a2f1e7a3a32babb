/**
 * Runs `work` for each item, at most `most` at a time, and returns the results in the order of the
 * items. After a failure no further item is begun, and those that are under way are awaited.
 * @throws the error of the first item that failed
 */
export async function atMost<Item, Result>(
  most: number,
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const entries = items.entries()
  const failures: unknown[] = []
  const worker = async () => {
    for (const [at, item] of entries) {
      if (failures.length > 0) return
      try {
        results[at] = await work(item)
      } catch (error) {
        failures.push(error)
        return
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker))
  if (failures.length > 0) throw failures[0]
  return results
}
