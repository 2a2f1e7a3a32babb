// Files of spreadsheets, whatever country's settings wrote them: their encoding, their separator,
// and what their amounts mean.

export type Separator = ',' | ';' | '\t'
export type DecimalMark = '.' | ','

/**
 * One line of a file, or several where a quoted field has line breaks. `number`: its first, as an
 * editor counts them.
 */
export interface Row {
  number: number
  fields: string[]
}

const SEPARATORS: readonly Separator[] = [';', '\t', ',']
/** What Excel writes before the columns, and reads. */
const SEPARATOR_LINE = /^sep=(.)\r?\n/i

/**
 * The text of a file. Excel writes UTF-16 as “Unicode text”, and Windows-1252 where it is not told
 * otherwise.
 */
export function decodeFile(bytes: Uint8Array): { text: string; encoding: string } {
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
 * What separates the fields: what the file says itself, else that which divides its first line into
 * most of these columns.
 */
export function separatorOf(text: string, columns: readonly string[]): Separator {
  const source = text.replace(/^\uFEFF/, '')
  const said = SEPARATOR_LINE.exec(source)?.[1]
  if (said === ',' || said === ';' || said === '\t') return said
  const found = (separator: Separator): number =>
    rowsOf(text, separator)[0]?.fields.filter((name) => columns.includes(name.trim().toLowerCase()))
      .length ?? 0
  return SEPARATORS.reduce((best, each) => (found(each) > found(best) ? each : best), ',')
}

/** Fields of a CSV text (RFC 4180). */
export function rowsOf(text: string, separator: Separator): Row[] {
  const rows: Row[] = []
  let fields: string[] = []
  let field = ''
  let isQuoted = false
  let line = 1
  let start = 1
  const end = () => {
    fields.push(field)
    if (fields.some((each) => each.trim() !== '')) rows.push({ number: start, fields })
    fields = []
    field = ''
    start = line + 1
  }
  // The line stays, empty, so that those below keep their numbers.
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

/** What divides thousands beside the other mark: spaces of all kinds, apostrophes. */
const GROUPS = String.raw`[\s\u00a0\u202f'’_]`
const READINGS: Readonly<Record<DecimalMark, RegExp>> = {
  '.': readingOf('.', ','),
  ',': readingOf(',', '.'),
}

function readingOf(mark: DecimalMark, other: DecimalMark): RegExp {
  const [point, group] = [`\\${mark}`, `(?:\\${other}|${GROUPS})`]
  // One that divides thousands divides all of them, and none of them begins with zero.
  return new RegExp(`^(?:[1-9]\\d{0,2}(${group})\\d{3}(?:\\1\\d{3})*|\\d+)?(?:${point}\\d*)?$`)
}

/**
 * An amount as a decimal with a point and without thousands separators; null where it is none by
 * that mark.
 * @param mark what stands before its decimals
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

const isSame = (a: string, b: string): boolean => {
  const bare = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)
  return bare(a) === bare(b)
}

/**
 * The decimal mark of a file's amounts. Commas between fields come from a country that writes a
 * point. Else it is the mark by which all amounts are decimals; null where they are by both, and
 * would be different amounts.
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
