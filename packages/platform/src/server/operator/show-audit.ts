import type { AuditReport, Difference, DifferenceKind } from '../audit/report.ts'

const KINDS: Readonly<Record<DifferenceKind, string>> = {
  surplus: 'surplus',
  deficit: 'DEFICIT',
  unknown: 'not compared',
}

/**
 * Formats an audit's report for a terminal: a line for each difference with its kind, then the
 * number of differences and the first step for the operator.
 */
export function showAudit({
  differences,
  networks,
  exchanges,
  books,
  compared,
}: AuditReport): string[] {
  const looked = Object.entries(networks)
    .map(
      ([code, { addresses, coins }]) =>
        `${code}: ${addresses > 0 ? `${addresses} addresses` : `${coins} coins`}`,
    )
    .join(', ')
  const { accounts, balances } = exchanges
  const claims = accounts > 0 ? `; ${balances} balances of ${accounts} exchange accounts` : ''
  const lines = differences.map((each) => {
    const where = `${each.network} ${each.workspace} ${each.subject} ${each.asset}`
    const note = [KINDS[each.kind], each.note].filter(Boolean).join('; ')
    return `DIFFERENCE ${where}: ledger ${each.ledger}, chain ${each.chain} (${note})`
  })
  const agreement =
    compared > 0
      ? `the ledger agrees with the chains${accounts > 0 ? ' and the exchanges' : ''}`
      : 'NOTHING was compared: the database has no address and no coin on any configured network, and no balance at an exchange'
  return [
    `${books.entries} ledger entries; ${looked}${claims}`,
    ...lines,
    lines.length > 0 ? verdictOn(differences) : agreement,
  ]
}

function verdictOn(differences: readonly Difference[]): string {
  const count = (kind: DifferenceKind) => differences.filter((each) => each.kind === kind).length
  const [deficits, surpluses, unknown] = [count('deficit'), count('surplus'), count('unknown')]
  const advice = [
    ...(deficits > 0
      ? ['A deficit means that the ledger owes more than exists: stop withdrawals.']
      : []),
    ...(surpluses > 0
      ? ['A surplus means that more exists than the ledger owes: withdrawals need not be stopped.']
      : []),
    ...(unknown > 0
      ? ['For each balance that was not compared, repair the endpoint and run the audit again.']
      : []),
  ].join(' ')
  return `${differences.length} differences: deficits ${deficits}, surpluses ${surpluses}, not compared ${unknown}. ${advice}`
}
