// Reads the first line of a file of transfers: the names of its columns.
import type { Row } from './csv.ts'

export const COLUMNS = [
  'asset',
  'amount',
  'destination_address',
  'address_tag',
  'memo',
  'fee_level',
  'reference',
] as const
type Column = (typeof COLUMNS)[number]

const NEEDED: readonly Column[] = ['asset', 'amount', 'destination_address']
/** Example of a first line, for messages. */
const EXAMPLE = 'asset,amount,destination_address'

/** Names that other programs use, by column. Each is compared without spaces and punctuation. */
const SYNONYMS: Readonly<Record<Column, readonly string[]>> = {
  asset: 'coin currency ticker token symbol cryptocurrency währung waehrung devise moneda'.split(
    ' ',
  ),
  amount: 'value sum total quantity qty betrag menge montant importe cantidad'.split(' '),
  destination_address:
    'address to recipient receiver destination payee beneficiary wallet walletaddress toaddress recipientaddress empfänger empfaenger adresse zieladresse destinataire direccion'.split(
      ' ',
    ),
  address_tag:
    'tag destinationtag desttag memoid paymentid message xrptag stellarmemo memotag'.split(' '),
  memo: 'note notes comment description text purpose verwendungszweck notiz libelle concepto'.split(
    ' ',
  ),
  fee_level: 'fee fees feerate priority speed gebühr gebuehr'.split(' '),
  reference: 'id ref invoice invoiceid orderid payoutid sequenceid referenz uuid'.split(' '),
}

const bare = (name: string): string =>
  name
    .toLowerCase()
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')

/** Number of single characters to insert, remove or replace so that two names are equal. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(
        (next[j - 1] as number) + 1,
        (row[j] as number) + 1,
        (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1),
      )
    row = next
  }
  return row[b.length] as number
}

const TYPING_ERRORS_MAX = 2
const NAME_LENGTH_MAX = 40

/** Returns the column that a foreign or misspelt name probably means; null if it is unknown. */
export function suggestColumn(name: string): Column | null {
  const text = bare(name)
  if (text.length > NAME_LENGTH_MAX) return null
  const same = COLUMNS.find((column) => bare(column) === text || SYNONYMS[column].includes(text))
  if (same !== undefined) return same
  return (
    COLUMNS.find(
      (column) =>
        text.length > TYPING_ERRORS_MAX + 1 && distance(text, bare(column)) <= TYPING_ERRORS_MAX,
    ) ?? null
  )
}

const list = (names: readonly string[]): string => names.join(', ')

/**
 * Returns the names of a file's columns. Columns without a name at the end of the line, as
 * spreadsheets write them, are left out.
 * @throws TypeError with a sentence that names the line, what it contains and what is allowed
 */
export function readColumns({ number, fields }: Row): string[] {
  const names = fields.map((name) => name.trim().toLowerCase())
  while (names.at(-1) === '') names.pop()
  const known: readonly string[] = COLUMNS
  const unknown = names.filter((name) => name !== '' && !known.includes(name))
  const missing = NEEDED.filter((name) => !names.includes(name))
  const nameless = names.indexOf('')
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  const hints = unknown.map((name) => {
    const suggestion = suggestColumn(name)
    const isFree = suggestion !== null && !names.includes(suggestion)
    return `There is no column “${name}”${isFree ? `: rename it to “${suggestion}”` : ''}.`
  })
  const problems = [
    ...(missing.length === 0
      ? []
      : [
          `The first line must name the columns; ${list(missing)} ${missing.length === 1 ? 'is' : 'are'} missing.`,
        ]),
    ...hints.slice(0, COLUMNS.length),
    ...(nameless === -1 ? [] : [`Column ${nameless + 1} has no name.`]),
    ...(twice === undefined || twice === '' ? [] : [`The column “${twice}” appears twice.`]),
  ]
  if (problems.length > 0)
    throw new TypeError(
      `Line ${number}: ${problems.join(' ')} Columns: ${list(COLUMNS)}. Example: ${EXAMPLE}`,
    )
  return names
}
