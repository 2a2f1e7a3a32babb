import type { AuditReport, Difference, DustTotal, ListedKind, NotCounted } from '../audit/report.ts'

const KINDS: Readonly<Record<ListedKind, string>> = {
  surplus: 'surplus',
  deficit: 'DEFICIT',
  reorganised: 'reorganised',
  unknown: 'not compared',
}

const REASONS: Readonly<Record<NotCounted['reason'], string>> = {
  CASH_TOKENS: 'the output carries CashTokens',
  TOKEN_ACCOUNT: 'another token account than the usual one of the address',
}

const KINDS_AT_EXCHANGE: Readonly<Record<ListedKind, string>> = {
  surplus: 'more at the exchange',
  deficit: 'less at the exchange',
  reorganised: 'not compared',
  unknown: 'not compared',
}

/**
 * Maximum number of printed lines about exchanges, because customers decide how many there are.
 * With --json all are returned.
 */
const EXCHANGE_LINES_MAX = 50
/** Maximum number of printed lines about coins that are not counted, because anyone can cause them. */
const NOT_COUNTED_LINES_MAX = 50

/**
 * Formats an audit's report for a terminal: first the exchanges, then a line for each difference
 * from the chains with its kind, their number, and the first step for the operator.
 */
export function showAudit({
  differences,
  dust,
  exchange_differences: atExchanges,
  not_counted: notCounted,
  networks,
  exchanges,
  books,
  compared,
}: AuditReport): string[] {
  const { accounts, balances, unproven, duplicates } = exchanges
  const claims = accounts > 0 ? `; ${balances} balances of ${accounts} exchange accounts` : ''
  const uncounted =
    unproven + duplicates > 0
      ? `; not counted: ${unproven} exchange accounts that are not proven distinct, ${duplicates} duplicates`
      : ''
  const lines = differences.map((each) => {
    const where = `${each.network} ${each.workspace} ${each.subject} ${each.asset}`
    const note = [KINDS[each.kind], each.note].filter(Boolean).join('; ')
    return `DIFFERENCE ${where}: ledger ${each.ledger}, chain ${each.chain} (${note})`
  })
  const isEqualThere = accounts > 0 && atExchanges.length === 0
  const agreement =
    compared > 0
      ? `the ledger agrees with the chains${isEqualThere ? ' and the exchanges' : ''}`
      : 'NOTHING was compared: the database has no address and no coin on any configured network, and no balance at an exchange'
  return [
    `${books.entries} ledger entries; ${networksText(networks)}${claims}${uncounted}`,
    ...exchangeLines(atExchanges),
    ...notCountedLines(notCounted),
    ...dustLines(dust),
    ...lines,
    lines.length > 0 ? verdictOn(differences) : agreement,
  ]
}

const counted = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`

/** Returns what was compared on each network, and how many networks have nothing to compare. */
function networksText(networks: AuditReport['networks']): string {
  const all = Object.entries(networks)
  const used = all.filter(([, { addresses, coins }]) => addresses > 0 || coins > 0)
  const empty = all.length - used.length
  const counted = (count: number, one: string, many: string) =>
    `${count} ${count === 1 ? one : many}`
  return [
    ...used.map(
      ([code, { addresses, coins }]) =>
        `${code}: ${addresses > 0 ? counted(addresses, 'address', 'addresses') : counted(coins, 'coin', 'coins')}`,
    ),
    ...(empty > 0 ? [`nothing on ${counted(empty, 'network', 'networks')}`] : []),
  ].join(', ')
}

const dustLines = (totals: readonly DustTotal[]): string[] =>
  totals.map(
    ({ asset, addresses, amount }) =>
      `DUST ${asset}: ${counted(addresses, 'address holds', 'addresses hold')} ${amount} more than the ledger records, each less than a sweep costs`,
  )

function notCountedLines(coins: readonly NotCounted[]): string[] {
  const lines = coins
    .slice(0, NOT_COUNTED_LINES_MAX)
    .map(
      ({ network, workspace, address, place, asset, amount, reason }) =>
        `NOT COUNTED ${network} ${workspace} ${address}: ${amount} ${asset} in ${place} (${REASONS[reason]})`,
    )
  const more = coins.length - lines.length
  return [...lines, ...(more > 0 ? [`NOT COUNTED ${more} more lines; --json returns all`] : [])]
}

function exchangeLines(differences: readonly Difference[]): string[] {
  if (differences.length === 0) return []
  const lines = differences.slice(0, EXCHANGE_LINES_MAX).map((each) => {
    const where = `${each.workspace} ${each.subject} ${each.asset}`.trim()
    const why =
      each.kind === 'unknown'
        ? each.note
        : `ledger ${each.ledger}, exchange ${each.chain} (${KINDS_AT_EXCHANGE[each.kind]})`
    return `EXCHANGE ${where}: ${why}`
  })
  const more = differences.length - lines.length
  return [
    ...lines,
    ...(more > 0 ? [`EXCHANGE ${more} more lines; --json returns all`] : []),
    `${counted(differences.length, 'difference', 'differences')} at customers' exchange accounts. Their owners cause them by trades, transfers or revoked keys, and are informed by exchange_account events. They change neither the comparison with the chains nor the exit code; withdrawals need not be stopped.`,
  ]
}

function verdictOn(differences: readonly Difference[]): string {
  const count = (kind: ListedKind) => differences.filter((each) => each.kind === kind).length
  const [deficits, surpluses, unknown] = [count('deficit'), count('surplus'), count('unknown')]
  const reorganised = count('reorganised')
  const advice = [
    ...(deficits > 0
      ? ['A deficit means that the ledger owes more than exists: stop withdrawals.']
      : []),
    ...(surpluses > 0
      ? ['A surplus means that more exists than the ledger owes: withdrawals need not be stopped.']
      : []),
    ...(reorganised > 0
      ? [
          'Networks whose endpoint contradicts a final block pay nothing: decide which chain is right, and run the audit again. Do not record these differences.',
        ]
      : []),
    ...(unknown > 0
      ? ['For each balance that was not compared, repair the endpoint and run the audit again.']
      : []),
  ].join(' ')
  const counts = [
    `deficits ${deficits}`,
    `surpluses ${surpluses}`,
    ...(reorganised > 0 ? [`reorganised ${reorganised}`] : []),
    `not compared ${unknown}`,
  ]
  return `${counted(differences.length, 'difference', 'differences')}: ${counts.join(', ')}. ${advice}`
}
