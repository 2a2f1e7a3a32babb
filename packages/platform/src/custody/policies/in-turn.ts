import { ApiError } from '../../core/errors.ts'

/** Before the first row of a table whose key begins with a UUID. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** How a background job reads and processes rows that stay due for long. */
interface InTurn<Row> {
  /** Position before the first row. */
  first: Row
  /** Rows that one run processes. */
  max: number
  /** Returns at most `max` due rows after a position, in the order of their keys. */
  read: (after: Row, max: number) => Promise<Row[]>
  process: (row: Row) => Promise<void>
}

/**
 * Creates the `run` of a loop that processes due rows in turn: each run continues after the last row
 * of the run before, and begins again after the last row. So rows that stay due do not keep others
 * waiting. An error of one row does not end the run: the first error is thrown when all rows have had
 * their turn. Silent signer nodes are no error; the row has its turn again.
 */
export function inTurn<Row>({ first, max, read, process }: InTurn<Row>) {
  let position = first
  return async (signal: AbortSignal): Promise<false> => {
    const rows = await read(position, max)
    const errors: unknown[] = []
    for (const row of rows) {
      if (signal.aborted) return false
      position = row
      try {
        await process(row)
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'SIGNERS_UNAVAILABLE') errors.push(error)
      }
    }
    if (rows.length < max) position = first
    if (errors.length > 0) throw errors[0]
    return false
  }
}
