// Determines the filter by which a search text finds transactions.
import { Problem, query, read } from './http.ts'
import { mirror } from './scope.ts'
import { filtersFor, type FoundBy } from './search-text.ts'
import type { TransactionPage } from './types.ts'

/**
 * Returns the filter by which a text finds something; the most likely one if none does. Each
 * attempt is one indexed read.
 * @param type the active type filter; the platform's automatic transactions are found only with it
 * @throws Problem
 */
export async function findTransactions(text: string, type: string | null): Promise<FoundBy | null> {
  const filters = filtersFor(text)
  if (filters.length < 2) return filters[0] ?? null
  let tooMany: Problem | null = null
  for (const name of filters) {
    try {
      const { total } = await read<TransactionPage>(
        mirror(`/dac/v1/transactions${query({ [name]: text, type, limit: 1 })}`),
      )
      if (Number(total) > 0) return name
    } catch (error) {
      // Too many memos begin with this text; it may be an address as well.
      if (!(error instanceof Problem && error.field === 'memo_begins')) throw error
      tooMany = error
    }
  }
  if (tooMany !== null) throw tooMany
  return filters[0] ?? null
}
