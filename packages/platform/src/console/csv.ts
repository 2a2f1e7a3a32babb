import { JsonNumber } from '@custody/request-auth'

/** What a spreadsheet takes for a formula at the beginning of a cell. */
const FORMULA = /^[=+\-@\t\r]/

/**
 * A line of CSV (RFC 4180). Text that a spreadsheet would calculate is made text by an apostrophe in front; numbers are ours, and
 * stay numbers.
 */
export const csvLine = (cells: readonly (string | number | JsonNumber | null)[]): string => `${cells.map(cellOf).join(',')}\r\n`

function cellOf(cell: string | number | JsonNumber | null): string {
  if (cell === null) return ''
  if (cell instanceof JsonNumber) return cell.text
  if (typeof cell === 'number') return String(cell)
  const text = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
