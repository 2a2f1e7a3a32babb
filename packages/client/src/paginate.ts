import type { Page } from './types.ts'

const PAGE_MOST = 500
const KNOWN_MAX = 100_000

/**
 * Iterates over the entries of a paged list, newest first. Entries that are added concurrently move
 * others to a later page; each of those is returned only once.
 * @param limit entries per page; the service's default if absent
 */
export async function* paginate<T extends object>(
  list: (page: { page: number; limit: number }) => Promise<Page<T>>,
  limit: number = PAGE_MOST,
): AsyncGenerator<T> {
  const seen = new Set<unknown>()
  for (let page = 1; ; page++) {
    const { data, total } = await list({ page, limit })
    for (const entry of data) {
      const { id, inv_id: invoice } = entry as { id?: unknown; inv_id?: unknown }
      const key = id ?? invoice
      if (seen.has(key)) continue
      if (seen.size >= KNOWN_MAX) seen.delete(seen.values().next().value)
      if (key !== undefined) seen.add(key)
      yield entry
    }
    if (data.length < limit || page * limit >= total) return
  }
}
