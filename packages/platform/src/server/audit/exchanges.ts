import { reasonOf } from '@custody/chains/reason'
import type { Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../../commerce/exchanges/venues.ts'
import type { AccountRow } from '../../commerce/exchanges/account.ts'
import { claims } from '../../commerce/exchanges/books.ts'
import { compareAccount } from '../../commerce/exchanges/reconcile.ts'
import { showUnits } from '../../commerce/exchanges/units.ts'
import { kindOf, type Difference, type ExchangeCounts } from './report.ts'

interface Services {
  environment: Environment
  database: Database
  aml: Aml
  exchanges: Venues
}

/** Result of the comparison with the exchanges. */
interface ExchangesCompared {
  counts: ExchangeCounts
  differences: Difference[]
}

const AT_ONCE = 8

/**
 * Compares claims on exchanges with the balances that each exchange reports. An account that cannot
 * be queried is reported as a difference, because it could not be compared. Only accounts whose
 * balances differ are compared again, because such a difference may settle within a few seconds.
 */
export async function compareExchanges(
  services: Services,
  { attemptsMax, pauseMs }: { attemptsMax: number; pauseMs: number },
): Promise<ExchangesCompared> {
  let open = await linkedAccounts(services.database)
  const results = new Map<string, Compared>()
  for (let attempt = 1; open.length > 0 && attempt <= attemptsMax; attempt++) {
    if (attempt > 1) await services.environment.sleep(pauseMs)
    for (let at = 0; at < open.length; at += AT_ONCE) {
      await Promise.all(
        open
          .slice(at, at + AT_ONCE)
          .map(async (row) => results.set(row.id, await compareOne(services, row))),
      )
    }
    open = open.filter(({ id }) => results.get(id)?.maySettle === true)
  }
  const counts: ExchangeCounts = { accounts: 0, balances: 0, unproven: 0, duplicates: 0 }
  for (const result of results.values()) count(counts, result)
  return { counts, differences: [...results.values()].flatMap(({ differences }) => differences) }
}

type Row = AccountRow & { workspace: string }

const linkedAccounts = (database: Database): Promise<Row[]> =>
  database.query<Row>(
    `select a.*, w.name workspace from exchange_accounts a
      join workspaces w on w.id = a.workspace_id where a.status <> 'deleted'
     order by a.created_at, a.id`,
  )

/**
 * Result for one account. `balances`: number of compared balances; null if nothing was compared.
 * `maySettle`: another comparison may show no difference.
 */
interface Compared {
  identity: AccountRow['identity']
  differences: Difference[]
  balances: number | null
  maySettle: boolean
}

function count(counts: ExchangeCounts, { identity, balances }: Compared): void {
  if (identity === 'duplicate') counts.duplicates++
  else if (identity !== 'proven') counts.unproven++
  else if (balances !== null) {
    counts.accounts++
    counts.balances += balances
  }
}

async function compareOne(services: Services, row: Row): Promise<Compared> {
  const { identity } = row
  if (identity === 'duplicate')
    return { identity, differences: [], balances: null, maySettle: false }
  const of = { network: '', workspace: row.workspace, subject: `${row.exchange} account ${row.id}` }
  const unknown = (note: string, maySettle: boolean): Compared => ({
    identity,
    differences: [{ ...of, kind: 'unknown', asset: '', ledger: '', chain: '', note }],
    balances: null,
    maySettle,
  })
  try {
    const { gaps, balances } = await compareAccount(services, row)
    if (gaps === null) return unknown('the ledger changed while the exchange was queried', true)
    const books = await claims(services.database, row)
    return {
      identity,
      balances: new Set([...books.keys(), ...balances.map(({ coin }) => coin)]).size,
      differences: gaps.map(({ coin, ledger, venue }) => ({
        ...of,
        kind: kindOf(BigInt(ledger), BigInt(venue)),
        asset: coin,
        ledger: showUnits(BigInt(ledger)),
        chain: showUnits(BigInt(venue)),
        note: 'at the exchange',
      })),
      maySettle: gaps.length > 0,
    }
  } catch (error) {
    return unknown(`not compared: ${reasonOf(error)}`, false)
  }
}
