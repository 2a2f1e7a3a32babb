import { reasonOf } from '@custody/chains/reason'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../../commerce/exchanges/venues.ts'
import type { AccountRow } from '../../commerce/exchanges/account.ts'
import { claims } from '../../commerce/exchanges/books.ts'
import { compareAccount } from '../../commerce/exchanges/reconcile.ts'
import { showUnits } from '../../commerce/exchanges/units.ts'
import { kindOf, type AuditReport, type Difference } from './report.ts'

interface Services {
  database: Database
  aml: Aml
  exchanges: Venues
}

/**
 * Compares claims on exchanges with the balances that each exchange reports. An account that cannot
 * be queried is reported as a difference, because it could not be compared.
 */
export async function exchangeDifferences(
  services: Services,
  differences: Difference[],
): Promise<AuditReport['exchanges']> {
  const rows = await services.database.query<AccountRow & { workspace: string }>(
    `select a.*, w.name workspace from exchange_accounts a
      join workspaces w on w.id = a.workspace_id where a.status <> 'deleted'
     order by a.created_at, a.id`,
  )
  let [accounts, balances] = [0, 0]
  for (const row of rows) {
    const of = {
      network: '',
      workspace: row.workspace,
      subject: `${row.exchange} account ${row.id}`,
    }
    const unknown = (note: string) =>
      differences.push({ ...of, kind: 'unknown', asset: '', ledger: '', chain: '', note })
    try {
      const compared = await compareAccount(services, row)
      if (compared.gaps === null) {
        unknown('the ledger changed while the exchange was queried')
        continue
      }
      accounts++
      const books = await claims(services.database, row)
      balances += new Set([...books.keys(), ...compared.balances.map(({ coin }) => coin)]).size
      for (const { coin, ledger, venue } of compared.gaps) {
        const [claimed, reported] = [showUnits(BigInt(ledger)), showUnits(BigInt(venue))]
        const kind = kindOf(BigInt(ledger), BigInt(venue))
        differences.push({
          ...of,
          kind,
          asset: coin,
          ledger: claimed,
          chain: reported,
          note: 'at the exchange',
        })
      }
    } catch (error) {
      unknown(`not compared: ${reasonOf(error)}`)
    }
  }
  return { accounts, balances }
}
