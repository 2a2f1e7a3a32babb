// Parses and validates a file of transfers line by line, without any request.
import { readColumns, suggestColumn } from './batch-columns.ts'
import type { AssetInfo, Line } from './batch-line.ts'
import {
  amountBy,
  decimalMarkOf,
  rowsOf,
  scientific,
  separatorOf,
  type DecimalMark,
  type Row,
  type Separator,
} from './csv.ts'
import { decimal, units } from './decimal.ts'
import { exact } from './wire.ts'

type Assets = ReadonlyMap<string, AssetInfo>

export const LINES_MAX = 1000
export const BYTES_MAX = 1_000_000
const REFERENCE_LENGTH_MAX = 100

/**
 * Returns the problem of a reference by itself; null if there is none. References are used as
 * `sequence_id`, like those that are generated here.
 */
function referenceProblem(text: string): string | null {
  if (text.length > REFERENCE_LENGTH_MAX)
    return `reference: has more than ${REFERENCE_LENGTH_MAX} characters`
  if (/\p{Cc}/u.test(text)) return 'reference: must not contain control characters'
  if (/^batch-/i.test(text)) return 'reference: must not begin with “batch-”'
  if (/#\d+$/.test(text)) return 'reference: must not end with “#” and a number'
  return null
}

/** A parsed file. */
export interface BatchFile {
  lines: Line[]
  separator: Separator
  /**
   * Null if the amounts are valid with either decimal mark but with different values, so the person
   * must choose.
   */
  mark: DecimalMark | null
}

/**
 * Returns the names of the columns and the rows below them.
 * @throws TypeError with a sentence if the file is not a table of transfers
 */
function readTable(text: string, separator: Separator): { names: string[]; rows: Row[] } {
  const [head, ...rows] = rowsOf(text, separator)
  if (head === undefined) throw new TypeError('The file is empty.')
  const names = readColumns(head)
  if (rows.length === 0) throw new TypeError('There is no line below the columns’ names.')
  if (rows.length > LINES_MAX)
    throw new TypeError(`${rows.length} lines: at most ${LINES_MAX} are sent from one file.`)
  const open = [head, ...rows].find(({ isOpen }) => isOpen)
  if (open !== undefined)
    throw new TypeError(
      `Line ${open.number}: a field begins with a quotation mark (") that is never closed. Close it, or write two quotation marks ("") for one within a field.`,
    )
  return { names, rows }
}

/**
 * Parses a file's lines without any request.
 * @param chosen the decimal mark that the person chose; absent: it follows from the file
 * @throws TypeError with a sentence if it is not a file of transfers
 */
export function readBatch(text: string, assets: Assets, chosen?: DecimalMark): BatchFile {
  const separator = separatorOf(text, (name) => suggestColumn(name) !== null)
  const { names, rows } = readTable(text, separator)
  const references = new Map<string, number>()
  const seen = new Map<string, number>()
  const amounts = rows.map(({ fields }) => fields[names.indexOf('amount')]?.trim() ?? '')
  const mark = chosen ?? decimalMarkOf(amounts, separator)
  const lines = rows.map(({ number, fields }) => {
    const of = (name: string) => fields[names.indexOf(name)]?.trim() ?? ''
    const line: Line = {
      number,
      asset: of('asset'),
      amount: of('amount'),
      destination_address: of('destination_address'),
      address_tag: of('address_tag'),
      memo: of('memo'),
      fee_level: of('fee_level'),
      reference: of('reference'),
      payee: { address: of('destination_address'), tag: of('address_tag') },
      plan: null,
      hasNoTag: false,
      hasTagColumn: names.includes('address_tag'),
      problems: [],
      notes: [],
    }
    const assetInfo = assets.get(line.asset)
    if (assetInfo === undefined) line.problems.push(assetProblem(line.asset, assets))
    readAmount(line, mark, chosen !== undefined || separator !== ',')
    const wrongAmount = amountProblem(line, of('amount'), mark, assetInfo?.decimals ?? 18)
    if (wrongAmount !== null) line.problems.push(`amount: ${wrongAmount}`)
    line.hasNoTag = assetInfo?.takes_tag === true && line.address_tag === ''
    line.problems.push(...fieldProblems(line, assetInfo))
    const extra = fields.slice(names.length).find((field) => field.trim() !== '')
    if (extra !== undefined)
      line.problems.push(
        `the line has more fields than columns, from “${extra.trim()}”; write a text that contains the separator in quotation marks, for example "rent${separator} March"`,
      )
    const strange = referenceProblem(line.reference)
    const same = references.get(line.reference)
    if (strange !== null) line.problems.push(strange)
    else if (same !== undefined) line.problems.push(`reference: is that of line ${same} too`)
    else if (line.reference !== '') references.set(line.reference, number)
    const payment = [line.asset, line.amount, line.destination_address, line.address_tag].join(' ')
    const earlier = seen.get(payment)
    if (earlier !== undefined) line.notes.push(`the same payment as line ${earlier}`)
    else seen.set(payment, number)
    return line
  })
  return { lines, separator, mark }
}

/** Returns the problems of a line's address, tag and fee level by themselves. */
function fieldProblems(line: Line, assetInfo: AssetInfo | undefined): string[] {
  const problems: string[] = []
  if (line.destination_address === '')
    problems.push('destination_address: is empty; write the address of the payee')
  if (!['', 'low', 'medium', 'high'].includes(line.fee_level))
    problems.push(
      `fee_level: “${line.fee_level}” is not allowed; write low, medium or high, or leave it empty`,
    )
  if (EXPONENT.test(line.address_tag))
    problems.push(
      `address_tag: “${line.address_tag}”: a spreadsheet has replaced its digits; format the column as text and enter the tag again`,
    )
  if (assetInfo?.takes_tag === false && line.address_tag !== '')
    problems.push(`address_tag: ${line.asset} has no address_tag; leave “${line.address_tag}” out`)
  return problems
}

/** Returns the problem of an unknown asset, with the asset that it probably means. */
function assetProblem(name: string, assets: Assets): string {
  const same = [...assets.keys()].find((each) => each.toUpperCase() === name.toUpperCase())
  const hint =
    same === undefined
      ? 'write the name as the page Wallets shows it, for example ETH or USDT_ETH'
      : `write “${same}”`
  return name === '' ? `asset: is empty; ${hint}` : `asset: no asset “${name}”; ${hint}`
}

/**
 * Returns what is wrong with an amount; null if nothing is.
 * @param written the amount as written in the file
 */
function amountProblem(
  { amount: text, asset }: Line,
  written: string,
  mark: DecimalMark | null,
  decimals: number,
): string | null {
  if (exact(text) === null || amountBy(written, mark ?? '.') === null)
    return `“${written}” is no amount; ${amountHint(written, mark)}`
  const amount = units(text, decimals)
  if (amount === null) return `“${written}” has more than ${decimals} decimal places of ${asset}`
  return amount === 0n ? `“${written}” is zero; write an amount above zero` : null
}

/** Returns how to write an amount that cannot be read. The value itself is never guessed. */
function amountHint(written: string, mark: DecimalMark | null): string {
  const digits = scientific(written)
  if (digits !== null)
    return `a spreadsheet has shortened it, perhaps without its last digits: format the column as text and write all digits, for example ${digits}`
  const other = mark === ',' ? '.' : ','
  const read = amountBy(written, other)?.amount
  if (read !== undefined)
    return `its decimal mark differs from that of the file: choose the decimal mark, or write it as the others, for example ${mark === ',' ? read.replace('.', ',') : read}`
  return `write digits only, for example 1250${mark ?? '.'}75`
}

/** The format in which a spreadsheet writes a long number. */
const EXPONENT = /^\d(?:[.,]\d+)?e\+?\d+$/i

/**
 * Sets a line's amount by a decimal mark, as digits with a point.
 * @param isMarkKnown whether the mark is more than a default; only then is a thousands separator
 *   recognized
 */
function readAmount(line: Line, mark: DecimalMark | null, isMarkKnown: boolean): void {
  const written = line.amount
  const read = amountBy(written, mark ?? '.')
  const other = amountBy(written, mark === ',' ? '.' : ',')
  if (mark === null && read !== null && other !== null && read.amount !== other.amount) {
    line.problems.push(
      `amount: “${written}” is ${read.amount} or ${other.amount}: choose the decimal mark`,
    )
  }
  if (read?.isGrouped && !isMarkKnown) {
    line.problems.push(
      `amount: “${written}” has thousands separators, or a decimal comma: choose the decimal mark, or write it without`,
    )
  }
  if (read === null) return
  line.amount = read.amount
  if (read.isGrouped && mark !== null) line.notes.push(`“${written}” is read as ${read.amount}`)
}

/** Returns the total of each asset in a file, with its available balance. */
export function totals(
  lines: readonly Line[],
  assets: Assets,
  balances: readonly { asset: string; balance: string }[],
): { asset: string; count: number; total: string; balance: string | null; isEnough: boolean }[] {
  const sums = new Map<string, { count: number; sum: bigint }>()
  for (const { asset, amount } of lines) {
    const assetInfo = assets.get(asset)
    const sum = assetInfo === undefined ? null : units(amount, assetInfo.decimals)
    if (sum === null) continue
    const before = sums.get(asset) ?? { count: 0, sum: 0n }
    sums.set(asset, { count: before.count + 1, sum: before.sum + sum })
  }
  return [...sums].map(([asset, { count, sum }]) => {
    const decimals = assets.get(asset)?.decimals ?? 0
    const balance = balances.find((each) => each.asset === asset)?.balance ?? null
    const held = balance === null ? null : units(balance, decimals)
    return {
      asset,
      count,
      total: decimal(sum, decimals),
      balance,
      isEnough: held !== null && held >= sum,
    }
  })
}

/** Returns the request of a planned line. */
export function bodyOf(line: Line): object {
  return {
    asset: line.asset,
    amount: exact(line.amount),
    destination_address: line.destination_address,
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    sequence_id: line.plan?.sequence_id,
    ...(line.address_tag === '' ? {} : { address_tag: line.address_tag }),
    ...(line.memo === '' ? {} : { memo: line.memo }),
    ...(line.fee_level === '' ? {} : { fee_level: line.fee_level }),
  }
}
