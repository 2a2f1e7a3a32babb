// Reads spreadsheet files of any regional settings: their encoding, separator, and decimal mark.

export type Separator = ',' | ';' | '\t'
export type DecimalMark = '.' | ','

/**
 * One row of a file, which spans several lines if a quoted field has line breaks. `number`: its
 * first line, as in an editor. `isOpen`: a quotation mark begins a field and the file ends within it.
 */
export interface Row {
  number: number
  fields: string[]
  isOpen?: true
}

const SEPARATORS: readonly Separator[] = [';', '\t', ',']
/** Line by which Excel declares the separator before the columns. */
const SEPARATOR_LINE = /^sep=(.)\r?\n/i

const AS_CSV = 'In the spreadsheet, choose “Save as” and “CSV UTF-8”, and choose that file here'
/** First bytes of other kinds of files, in hexadecimal, with the sentence about them. */
const OTHER_FILES: readonly (readonly [RegExp, string])[] = [
  [
    /^504b(0304|0506|0708)/,
    `This is a workbook (XLSX, ODS or another ZIP file) and not a CSV file. ${AS_CSV}.`,
  ],
  [/^d0cf11e0a1b11ae1/, `This is an Excel workbook (XLS) and not a CSV file. ${AS_CSV}.`],
  [/^1f8b/, 'This is a compressed file (gzip). Unpack it first.'],
  [/^25504446/, 'This is a PDF file. Choose the CSV file from which it was made.'],
]
/** Begin of texts that are no CSV files. */
const OTHER_TEXTS: readonly (readonly [RegExp, string])[] = [
  [
    /^<(!doctype\s+)?(html|table)\b/i,
    `This is an HTML table and not a CSV file. Open it in a spreadsheet. ${AS_CSV}.`,
  ],
  [
    /^<[?!]?[a-z]/i,
    'This is an XML file, for example a bank’s payment file (pain.001), and not a CSV file. Export the payments as CSV from the program that made it.',
  ],
  [/^[[{]/, 'This is a JSON file and not a CSV file. Export the payments as CSV.'],
]

/**
 * Refuses a file that is recognizably no CSV file.
 * @throws TypeError with a sentence that says how to get a CSV file
 */
function assertCsv(bytes: Uint8Array, text: string): void {
  const start = [...bytes.subarray(0, 8)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const beginning = text.replace(/^\uFEFF/, '').trimStart()
  const problem =
    OTHER_FILES.find(([magic]) => magic.test(start)) ??
    OTHER_TEXTS.find(([pattern]) => pattern.test(beginning))
  if (problem !== undefined) throw new TypeError(problem[1])
  if (text.includes('\0'))
    throw new TypeError(`This is not a text file, or its encoding is unknown. ${AS_CSV}.`)
}

/**
 * Decodes a CSV file. Excel writes UTF-16 as “Unicode text”, and Windows-1252 by default.
 * @throws TypeError with a sentence if it is another kind of file
 */
export function decodeFile(bytes: Uint8Array): { text: string; encoding: string } {
  const decoded = decode(bytes)
  assertCsv(bytes, decoded.text)
  return decoded
}

function decode(bytes: Uint8Array): { text: string; encoding: string } {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe)
    return { text: new TextDecoder('utf-16le').decode(bytes), encoding: 'UTF-16' }
  if (first === 0xfe && second === 0xff)
    return { text: new TextDecoder('utf-16be').decode(bytes), encoding: 'UTF-16' }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), encoding: 'UTF-8' }
  } catch {
    return { text: new TextDecoder('windows-1252').decode(bytes), encoding: 'Windows-1252' }
  }
}

/**
 * Returns the field separator: the one that the file declares, otherwise the one that splits its
 * first line into most names of columns.
 * @param isColumn whether a text is a name of a column, in any program
 */
export function separatorOf(text: string, isColumn: (name: string) => boolean): Separator {
  const source = text.replace(/^\uFEFF/, '')
  const said = SEPARATOR_LINE.exec(source)?.[1]
  if (said === ',' || said === ';' || said === '\t') return said
  const columnsFound = (separator: Separator): number =>
    rowsOf(text, separator)[0]?.fields.filter((name) => isColumn(name)).length ?? 0
  return SEPARATORS.reduce(
    (best, each) => (columnsFound(each) > columnsFound(best) ? each : best),
    ',',
  )
}

/** Parses the fields of a CSV text (RFC 4180). */
export function rowsOf(text: string, separator: Separator): Row[] {
  const rows: Row[] = []
  let fields: string[] = []
  let field = ''
  let isQuoted = false
  let line = 1
  let start = 1
  const end = () => {
    fields.push(field)
    if (isQuoted || fields.some((each) => each.trim() !== ''))
      rows.push({ number: start, fields, ...(isQuoted ? { isOpen: true } : {}) })
    fields = []
    field = ''
    start = line + 1
  }
  // The line stays, empty, so that later lines keep their numbers.
  const source = text
    .replace(/^\uFEFF/, '')
    .replace(SEPARATOR_LINE, '\n')
    .replaceAll('\r\n', '\n')
  for (let at = 0; at < source.length; at++) {
    const char = source[at] as string
    if (isQuoted) {
      if (char === '"' && source[at + 1] === '"') field += source[++at]
      else if (char === '"') isQuoted = false
      else field += char
    } else if (char === '"' && field.trim() === '') {
      field = ''
      isQuoted = true
    } else if (char === separator) {
      fields.push(field)
      field = ''
    } else if (char === '\n') end()
    else field += char
    if (char === '\n') line++
  }
  end()
  return rows
}

/** Thousands separators in addition to the other mark: spaces of all kinds, apostrophes. */
const GROUPS = String.raw`[\s\u00a0\u202f'’_]`
const READINGS: Readonly<Record<DecimalMark, RegExp>> = {
  '.': readingOf('.', ','),
  ',': readingOf(',', '.'),
}

function readingOf(mark: DecimalMark, other: DecimalMark): RegExp {
  const [point, group] = [`\\${mark}`, `(?:\\${other}|${GROUPS})`]
  // A thousands separator must be used throughout, and the first group must not begin with zero.
  return new RegExp(`^(?:[1-9]\\d{0,2}(${group})\\d{3}(?:\\1\\d{3})*|\\d+)?(?:${point}\\d*)?$`)
}

/**
 * Normalizes an amount to a decimal with a point and without thousands separators; null if it is
 * invalid with that mark.
 * @param mark decimal mark
 */
export function amountBy(
  text: string,
  mark: DecimalMark,
): { amount: string; isGrouped: boolean } | null {
  const plain = text.trim()
  if (!/\d/.test(plain) || !READINGS[mark].test(plain)) return null
  const [whole = '', fraction = ''] = plain.split(mark)
  const digits = whole.replaceAll(/\D/g, '').replace(/^0+(?=\d)/, '') || '0'
  return { amount: fraction === '' ? digits : `${digits}.${fraction}`, isGrouped: /\D/.test(whole) }
}

/**
 * Reads an amount in scientific notation, as spreadsheets display small and large numbers: `1,5E-05`.
 * Returns its value in digits, which can lack digits that the spreadsheet did not display; null if
 * it is another text.
 */
export function scientific(text: string): string | null {
  const match = /^(\d)(?:[.,](\d+))?e([+-]?\d{1,2})$/i.exec(text.trim())
  if (match === null) return null
  const [, first = '', rest = '', exponent = ''] = match
  const shift = Number(exponent)
  const digits = `${'0'.repeat(Math.max(0, -shift))}${first}${rest}${'0'.repeat(Math.max(0, shift - rest.length))}`
  const at = Math.max(1, shift + 1)
  const fraction = digits.slice(at).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, at) : `${digits.slice(0, at)}.${fraction}`
}

const isSame = (a: string, b: string): boolean => {
  const bare = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)
  return bare(a) === bare(b)
}

/**
 * Determines the decimal mark of a file's amounts. If fields are separated by commas, it is a
 * point. Otherwise it is the mark with which all amounts are valid; null if both are possible with
 * different values.
 */
export function decimalMarkOf(
  amounts: readonly string[],
  separator: Separator,
): DecimalMark | null {
  if (separator === ',') return '.'
  const [byPoint, byComma] = (['.', ','] as const).map((mark) =>
    amounts.map((text) => amountBy(text, mark)?.amount ?? null),
  ) as [(string | null)[], (string | null)[]]
  const wrong = (read: readonly (string | null)[]) => read.filter((each) => each === null).length
  if (wrong(byPoint) !== wrong(byComma)) return wrong(byPoint) < wrong(byComma) ? '.' : ','
  const isEqual = byPoint.every(
    (each, at) => each === null || byComma[at] === null || isSame(each, byComma[at] as string),
  )
  return isEqual ? '.' : null
}
