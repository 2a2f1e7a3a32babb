import { oneLine } from '@custody/chains/terminal'
import { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'

/** Start of a CSV file that people open: without it, Excel reads UTF-8 as Windows-1252. */
export const BYTE_ORDER_MARK = '\ufeff'

/** Query parameter of exports: whether the file begins with a byte order mark. */
export const byteOrderMark = z.enum(['true', 'false']).default('true').meta({
  description:
    'Whether the file begins with a byte order mark, without which Excel reads UTF-8 as Windows-1252; `false` for programs',
})

/**
 * Converts a time of the API to the form that spreadsheets read as a date: `2026-01-31 13:05:09`, in
 * UTC and without fractions of a second.
 * @param at ISO 8601 in UTC, or null
 */
export const csvTime = (at: string | null): string | null =>
  at === null ? null : at.slice(0, 19).replace('T', ' ')

/**
 * Characters at which a spreadsheet may split a quoted text: with `;` as separator, it recognizes
 * quotes only directly after a `;`. Tabs and line ends are not in the text any more.
 */
const SEPARATOR = ';'
/**
 * First characters of a formula, including full-width and small forms and the minus sign U+2212.
 */
const OPERATORS = new Set('=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212')
/**
 * White space, invisible characters and quotation marks, which spreadsheets may skip before a
 * formula.
 */
const SKIPPED = /[\s\p{Cc}\p{Cf}\p{Pi}\p{Pf}"'\u0060\uff02\uff07]/u

/**
 * Returns a line of CSV (RFC 4180). Text can come from strangers: control characters, line ends and
 * characters that change the direction of text are written as their code, as at the terminal, and
 * text that a spreadsheet would evaluate is prefixed with an apostrophe, also within a cell if the
 * spreadsheet may split it there. Numbers come from the platform and remain numbers.
 */
export const csvLine = (cells: readonly (string | number | JsonNumber | null)[]): string =>
  `${cells.map(cellOf).join(',')}\r\n`

function cellOf(cell: string | number | JsonNumber | null): string {
  if (cell === null) return ''
  if (cell instanceof JsonNumber) return cell.text
  if (typeof cell === 'number') return String(cell)
  const text = withoutFormulas(oneLine(cell))
  return /[",;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/**
 * Inserts an apostrophe at each position where a cell could begin and the first significant
 * character would be a formula.
 */
function withoutFormulas(text: string): string {
  const characters = [...text]
  let isFormula = false
  // Iterates from the end, so that each character is read once.
  for (let at = characters.length - 1; at >= 0; at--) {
    const character = characters[at] as string
    if (OPERATORS.has(character)) isFormula = true
    else if (!SKIPPED.test(character)) isFormula = false
    const isBeginning = at === 0 || characters[at - 1] === SEPARATOR
    if (isFormula && isBeginning) characters[at] = `'${character}`
  }
  return characters.join('')
}
