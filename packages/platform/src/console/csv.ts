import { JsonNumber } from '@custody/request-auth'

/**
 * What a spreadsheet may split a line at, although the text is quoted: with `;` it respects quotes
 * only directly after a `;`.
 */
const SEPARATORS = new Set(';\t\r\n')
/** What begins a formula, also in full width, in small form and as the minus sign U+2212. */
const OPERATORS = new Set('=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212')
/**
 * White space, invisible characters and quotation marks, which spreadsheets may skip before a
 * formula.
 */
const SKIPPED = /[\s\p{Cc}\p{Cf}\p{Pi}\p{Pf}"'\u0060\uff02\uff07]/u

/**
 * A line of CSV (RFC 4180). Text that a spreadsheet would calculate is made text by an apostrophe
 * in front of it, also within a cell where the spreadsheet may split it. Numbers are the platform's
 * own and stay numbers.
 */
export const csvLine = (cells: readonly (string | number | JsonNumber | null)[]): string =>
  `${cells.map(cellOf).join(',')}\r\n`

function cellOf(cell: string | number | JsonNumber | null): string {
  if (cell === null) return ''
  if (cell instanceof JsonNumber) return cell.text
  if (typeof cell === 'number') return String(cell)
  const text = withoutFormulas(cell)
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/**
 * Puts an apostrophe wherever a cell could begin and a formula, or a line end, would be the first
 * that counts.
 */
function withoutFormulas(text: string): string {
  const characters = [...text]
  let isFormula = false
  // From the end, so that each character is read once.
  for (let at = characters.length - 1; at >= 0; at--) {
    const character = characters[at] as string
    if (OPERATORS.has(character)) isFormula = true
    else if (!SKIPPED.test(character)) isFormula = false
    const isLineEnd = at === 0 && character !== ';' && SEPARATORS.has(character)
    const isBeginning = at === 0 || SEPARATORS.has(characters[at - 1] as string)
    if (isLineEnd || (isFormula && isBeginning)) characters[at] = `'${character}`
  }
  return characters.join('')
}
