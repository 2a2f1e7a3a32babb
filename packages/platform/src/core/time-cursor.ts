import { z } from 'zod'
import { WORD_MAX } from './bounds.ts'

/** A position in a list that is sorted by time and then by ID. */
interface Position {
  at: Date
  id: string
}

const CURSOR = /^(\d{1,14})\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/
const CURSOR_MAX = 51
const EXAMPLE = '1795600000000.7c9e6679-7425-40de-944b-e07fc1f90ae7'

/**
 * Query field `after` of a list: `next` of an earlier response.
 * @param follows what the list contains, as in "returns the transfers that follow"
 */
export const after = (follows: string) =>
  z
    .string()
    .max(CURSOR_MAX)
    .regex(CURSOR, 'must be `next` of an earlier response')
    .optional()
    .meta({
      description: `\`next\` of an earlier response: returns the ${follows} that follow`,
      examples: [EXAMPLE],
    })

/**
 * Response fields of a list with a cursor.
 * @param example a cursor of the list
 */
export const pageFieldsLike = (example: string) => ({
  next: z
    .string()
    .max(WORD_MAX)
    .nullable()
    .meta({
      description: 'Cursor of the next page: pass it as `after`; null on the last page',
      examples: [example],
    }),
  has_more: z.boolean().meta({ description: 'Whether there are more records' }),
})

export const pageFields = pageFieldsLike(EXAMPLE)

/** Reads `after`: both are null on the first page. */
export function readCursor(cursor: string | undefined): Position | { at: null; id: null } {
  const [, at, id] = (cursor === undefined ? null : CURSOR.exec(cursor)) ?? []
  return at === undefined || id === undefined
    ? { at: null, id: null }
    : { at: new Date(Number(at)), id }
}

/**
 * Splits rows that were read with one more than the limit.
 * @returns `rows`: those to show; `page`: the response fields
 */
export function pageOf<Row>(
  read: readonly Row[],
  limit: number,
  positionOf: (row: Row) => Position,
): { rows: Row[]; page: { next: string | null; has_more: boolean } } {
  const rows = read.slice(0, limit)
  const last = read.length > limit ? rows.at(-1) : undefined
  if (last === undefined) return { rows, page: { next: null, has_more: false } }
  const { at, id } = positionOf(last)
  return { rows, page: { next: `${at.getTime()}.${id}`, has_more: true } }
}
