import { formatAmount, type Registry } from '@custody/chains'
import { USD_DECIMALS } from '../../core/decimals.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../../commerce/exchanges/venues.ts'
import { contradictionText } from '../../core/engine/endpoints/belief.ts'
import { contradictionsOf } from '../../custody/deposits/contradiction.ts'
import { reportDust } from './dust.ts'
import { compareExchanges } from './exchanges.ts'
import { compareNetworks, type ComparedNetwork } from './networks.ts'
import type { AuditReport, Difference } from './report.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  aml: Aml
  exchanges: Venues
}

const ATTEMPTS_MAX = 15
const PAUSE_MS = 1000

/**
 * Compares the ledger with the chains, for each address and each coin. Amounts that move during the
 * comparison settle within a few seconds, so only differences that remain are reported.
 * @param signal ends the audit between two networks, or lots of addresses
 * @throws the signal's reason after it was aborted
 */
export async function audit(services: Services, signal?: AbortSignal): Promise<AuditReport> {
  let last = await attempt(services, signal, null)
  for (let count = 1; last.report.differences.length > 0 && count < ATTEMPTS_MAX; count++) {
    await services.environment.sleep(PAUSE_MS, signal)
    last = await attempt(services, signal, last)
  }
  const { report } = last
  // Exchanges are compared separately, so that a difference there, which a customer can cause,
  // neither repeats the comparison with the chains nor changes its result.
  const { counts, differences: atExchanges } = await compareExchanges(services, {
    attemptsMax: ATTEMPTS_MAX,
    pauseMs: PAUSE_MS,
  })
  const compared = report.compared + counts.balances
  return {
    ...report,
    ok: report.differences.length === 0 && compared > 0,
    compared,
    exchanges: counts,
    exchange_differences: atExchanges,
  }
}

interface Attempt {
  report: Omit<AuditReport, 'ok' | 'exchanges' | 'exchange_differences'>
  networks: ComparedNetwork[]
}

/**
 * Compares the ledger with itself and with the chains.
 * @param before the previous attempt; of the chains, only what differed there is compared again
 */
async function attempt(
  services: Services,
  signal: AbortSignal | undefined,
  before: Attempt | null,
): Promise<Attempt> {
  const differences: Difference[] = []
  const books = await checkBooks(services, differences)
  const contradictions = await contradictionsOf(services.database)
  const networks = await compareNetworks(services, before?.networks ?? [], signal)
  for (const { code, differences: found } of networks) {
    const contradiction = contradictions.get(code)
    differences.push(
      ...(contradiction
        ? found.map((each) => ({
            ...each,
            kind: 'reorganised' as const,
            note: contradictionText(code, contradiction),
          }))
        : found),
    )
  }
  await networksNotCompared(services, differences)
  const counted = networks.filter(({ counts }) => counts !== null)
  const counts = Object.fromEntries(counted.map(({ code, counts: each }) => [code, each!]))
  const compared = Object.values(counts).reduce(
    (sum, { addresses, coins }) => sum + addresses + coins,
    0,
  )
  const notCounted = networks.flatMap((each) => each.notCounted)
  const dust = networks.flatMap((each) => reportDust(services.registry, each.code, each.dust))
  return {
    report: { compared, networks: counts, books, differences, dust, not_counted: notCounted },
    networks,
  }
}

/**
 * Reports coins in the ledger on a network without an endpoint, because they could not be compared.
 */
async function networksNotCompared(services: Services, differences: Difference[]): Promise<void> {
  const rows = await services.database.query<{ workspace: string; asset: string; sum: string }>(
    `select w.name workspace, a.asset, sum(a.balance)::text sum from ledger_accounts a
      join workspaces w on w.id = a.workspace_id
     where a.kind not in ('chain', 'fees', 'prepaid', 'prepaid_reserved', 'venue', 'venue_outside',
       'venue_fees') and a.balance <> 0 group by 1, 2 order by 1, 2`,
  )
  for (const { workspace, asset: ticker, sum } of rows) {
    const asset = services.registry.asset(ticker)
    if (asset && services.networks.has(asset.network)) continue
    const ledger = formatAmount(BigInt(sum), asset?.decimals ?? 0)
    differences.push({
      kind: 'unknown',
      network: asset?.network ?? '',
      workspace,
      subject: 'not compared',
      asset: ticker,
      ledger,
      chain: '',
      note: 'the network has no endpoint: configure one, and run the audit again',
    })
  }
}

/**
 * Checks the ledger itself: every entry sums to zero per asset, and every balance is the sum of its
 * postings.
 */
async function checkBooks(
  services: Services,
  differences: Difference[],
): Promise<AuditReport['books']> {
  const unbalanced = await services.database.query<{ id: string; asset: string; sum: string }>(
    `select p.entry_id::text id, a.asset, sum(p.amount)::text sum from ledger_postings p
      join ledger_accounts a on a.workspace_id = p.workspace_id and a.id = p.account_id group by 1,
        2 having sum(p.amount) <> 0 limit 100`,
  )
  for (const row of unbalanced) {
    differences.push({
      kind: 'deficit',
      network: '',
      workspace: '',
      subject: `ledger entry ${row.id}`,
      asset: row.asset,
      ledger: row.sum,
      chain: '0',
      note: 'the postings of the entry do not sum to zero',
    })
  }
  const drifted = await services.database.query<{
    id: string
    asset: string
    balance: string
    sum: string
  }>(
    `select a.id::text, a.asset, a.balance::text, coalesce(sum(p.amount), 0)::text sum
     from ledger_accounts a left join ledger_postings p on p.workspace_id = a.workspace_id
       and p.account_id = a.id
     group by a.workspace_id, a.id having a.balance <> coalesce(sum(p.amount), 0) limit 100`,
  )
  for (const row of drifted) {
    differences.push({
      kind: 'deficit',
      network: '',
      workspace: '',
      subject: `ledger account ${row.id}`,
      asset: row.asset,
      ledger: row.balance,
      chain: row.sum,
      note: 'the balance is not the sum of its postings',
    })
  }
  await checkReservedFees(services, differences)
  const count = await services.database.one<{ count: string }>(
    'select count(*)::text from ledger_entries',
  )
  return { entries: Number(count?.count ?? 0), balanced: unbalanced.length + drifted.length === 0 }
}

/** Checks that the reserved platform fees are the sum of those of pending transactions. */
async function checkReservedFees(services: Services, differences: Difference[]): Promise<void> {
  // Reserved platform fees belong to pending transactions whose fee was neither charged nor
  // released.
  const reserved = await services.database.query<{
    workspace: string
    balance: string
    sum: string
  }>(
    `select w.name workspace, a.balance::text, coalesce(t.sum, 0)::text sum
     from ledger_accounts a join workspaces w on w.id = a.workspace_id
     left join (
       select workspace_id, sum(platform_fee) from (
         select workspace_id, platform_fee from transactions
         where status = 'pending' and platform_fee > 0 and not exists (
           select 1 from ledger_entries
              where workspace_id = transactions.workspace_id
                and kind in ('prepaid-charge', 'prepaid-refund')
                and reference = transactions.id::text
         )
         union all select workspace_id, platform_fee from orders where state <> 'ENDED'
       ) reserved group by 1
     ) t on t.workspace_id = a.workspace_id
     where a.kind = 'prepaid_reserved' and a.balance <> coalesce(t.sum, 0) limit 100`,
  )
  for (const row of reserved) {
    differences.push({
      kind: 'deficit',
      network: '',
      workspace: row.workspace,
      subject: 'reserved platform fees',
      asset: 'USD',
      ledger: formatAmount(BigInt(row.balance), USD_DECIMALS),
      chain: formatAmount(BigInt(row.sum), USD_DECIMALS),
      note: 'differs from the sum of the reserved fees',
    })
  }
}
