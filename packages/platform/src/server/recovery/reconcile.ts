import { audit } from '../audit/audit.ts'
import type { AuditReport } from '../audit/report.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Logger } from 'pino'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { Venues } from '../../commerce/exchanges/venues.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import type { Adopted } from './adopt.ts'
import { adoptAll, noteUnadopted, openAll, show, shown, type Unadopted } from './adopt-all.ts'
import { whileAdopting } from './adopting.ts'
import {
  knownOf,
  NODES_NEEDED,
  readHistory,
  saveMarks,
  type History,
  type Recorded,
} from './history.ts'
import { compareRecords } from './compare-records.ts'
import { NotAdopted } from './open.ts'
import { adoptKeys, adoptUsers, type ScanFrom } from './restore-wallets.ts'
import {
  endSearch,
  listFound,
  rememberScans,
  scanAgain,
  watchAhead,
  type Watched,
} from './window.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers' | 'role'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  keys: WorkspaceKeys
  addresses: Addresses
  log: Logger
  hold: DatabaseHold
  aml: Aml
  callers: Callers
  exchanges: Venues
  devnet: DevnetControl | null
}

export interface ReconcileOptions {
  dryRun: boolean
  scanFrom: ScanFrom
  /** Number of deposit addresses to watch beyond the last known one. */ gap: number
  /** Maximum time to wait for scanning and confirming, in milliseconds. */ waitMs: number
}

interface Deposit {
  id: string
  workspace: string
  asset: string
  amount: string
  address: string
  tag: string | null
  hash: string
  state: string
}

/**
 * A reconciliation in progress. Scanning a week of blocks takes longer than a call may, so it runs
 * in the background and is polled.
 */
export interface ReconcileJob {
  report: ReconcileReport | null
  error: Error | null
}

export interface ReconcileReport {
  ok: boolean
  dry_run: boolean
  nodes: { heard: number[]; missing: { node: number; reason: string }[] }
  users: { api_key: string; workspace: string; sub_account: string; done: string }[]
  transactions: (Adopted & { state?: string })[]
  wallets: { workspace: string; asset: string }[]
  watched: Watched[]
  addresses: { network: string; address: string; asset: string }[]
  deposits: Deposit[]
  /**
   * Standing rules that the nodes have but this database does not; their owners must create them
   * again.
   */
  rules: { rule: string; workspace: string; asset: string; destination: string }[]
  unadopted: Unadopted[]
  waiting: string[]
  audit: AuditReport | null
}

const POLL_MS = 500

/**
 * Restores in a database from an older backup the data that the signer nodes have recorded and the
 * chains report. It can be repeated at any time; known data stays unchanged.
 */
export async function reconcile(
  services: Services,
  options: ReconcileOptions,
): Promise<ReconcileReport> {
  const startedAt = new Date(services.environment.now())
  const history = await readHistory(services, true)
  if (history.marks.length < NODES_NEEDED)
    throw new NotAdopted(
      'two signer nodes must return their records, but ' +
        history.missing.map(({ node, reason }) => `signer ${node}: ${reason}`).join('; '),
    )
  const report: ReconcileReport = {
    ok: false,
    dry_run: options.dryRun,
    nodes: { heard: history.marks.map(({ node }) => node), missing: history.missing },
    users: [],
    transactions: [],
    wallets: [],
    watched: [],
    addresses: [],
    deposits: [],
    rules: [],
    unadopted: [],
    waiting: [],
    audit: null,
  }
  if (options.dryRun) {
    for (const { recorded, opened, error } of await openAll(services, history.unknown)) {
      if (opened)
        report.transactions.push({
          id: recorded.transaction_id ?? recorded.id,
          kind: recorded.purpose,
          workspace: recorded.workspace,
          asset: opened.decoded.asset,
          amount: show(services, opened.decoded.asset, opened.decoded.payments[0]?.amount ?? 0n),
          hash: opened.signed.hash,
          done: 'created',
        })
      else if (error) report.unadopted.push(shown(recorded, error))
    }
    return { ...report, ok: history.unknown.length === 0 }
  }
  await whileAdopting(services, () =>
    services.hold.during('the records of the signer nodes are being adopted', async () => {
      report.users = await adoptUsers(services, history.enrolled)
      await adoptKeys(services, history.keys)
      await adoptRecorded(services, history, options, report)
      await rememberScans(services)
      report.watched = await watchAhead(services, options.gap)
      await saveMarks(services, history.marks)
    }),
  )
  await compareRecords(services)
  const isSearched = await search(services, options, report)
  report.rules = await lostRules(services, history)
  report.deposits = await depositsSince(services, startedAt)
  report.audit = await audit(services)
  for (const each of report.transactions) {
    const row = await services.database.one<{ state: string }>(
      'select state from transactions where id::text = $1',
      [each.id],
    )
    each.state = row?.state ?? ''
  }
  return {
    ...report,
    ok: report.audit.ok && isSearched && !report.unadopted.some(({ matters }) => matters),
  }
}

/** Adopts all records that are unknown here, including those that could not be adopted before. */
async function adoptRecorded(
  services: Services,
  history: History,
  { scanFrom }: ReconcileOptions,
  report: ReconcileReport,
): Promise<void> {
  const noted = await services.database.query<{ recorded: Recorded }>(
    'select recorded from unadopted_steps',
  )
  // A transaction whose adoption was committed although the connection broke counts as adopted.
  const existing = await knownOf(
    services,
    noted.map(({ recorded }) => recorded),
  )
  await services.database.query('delete from unadopted_steps where id = any($1)', [
    [...existing].flatMap(([id, state]) => (state === 'BUILT' ? [] : [id])),
  ])
  const open = noted.flatMap(({ recorded }) =>
    existing.has(recorded.id) && existing.get(recorded.id) !== 'BUILT' ? [] : [recorded],
  )
  const steps = [
    ...new Map(
      [...open, ...history.unknown, ...history.unsigned].map((each) => [each.id, each]),
    ).values(),
  ]
  const all = await adoptAll(services, steps, scanFrom)
  await noteUnadopted(services, all, steps)
  report.transactions.push(...all.transactions)
  report.wallets.push(...all.wallets)
  report.unadopted.push(...all.unadopted.map(({ recorded, error }) => shown(recorded, error)))
}

/**
 * Waits for the scanners and for the adopted transactions. If deposits are found on the last
 * watched addresses, more addresses are watched.
 * @returns whether every network was scanned up to its head; transactions that only wait for their
 *   depth are left to ordinary processing
 */
async function search(
  services: Services,
  { gap, waitMs }: ReconcileOptions,
  report: ReconcileReport,
): Promise<boolean> {
  const deadline = services.environment.now() + waitMs
  const left = () => deadline - services.environment.now()
  for (;;) {
    report.waiting = await waitUntil(services, left, () => unscanned(services))
    report.addresses.push(...(await listFound(services)))
    if (report.waiting.length > 0) return false
    const more = await watchAhead(services, gap)
    report.watched.push(...more)
    if (more.length === 0) break
    await scanAgain(services, [...new Set(more.map(({ network }) => network))])
  }
  await endSearch(services)
  report.waiting = await waitUntil(services, left, () =>
    unconfirmed(
      services,
      report.transactions.map(({ id }) => id),
    ),
  )
  return true
}

async function waitUntil(
  services: Services,
  left: () => number,
  read: () => Promise<string[]>,
): Promise<string[]> {
  for (;;) {
    const waiting = await read()
    if (waiting.length === 0 || left() <= 0) return waiting
    await services.environment.sleep(Math.min(POLL_MS, left()))
  }
}

/**
 * Returns the networks whose scanner has not reached the head, or has not credited deposits at
 * their depth.
 */
async function unscanned(services: Services): Promise<string[]> {
  const scans = await services.database.query<{ network: string; height: string; due: boolean }>(
    `select s.network, s.height::text, exists (select 1 from transactions t
       join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
       where t.network = s.network and t.state = 'CONFIRMING'
         and t.kind in ('DEPOSIT', 'TANK_DEPOSIT')
         and d.block_height <= s.final_height and not d.coinbase and not d.adopted
         and not d.claimed) due
           from network_scans s where s.height is not null`,
  )
  const waiting: string[] = []
  for (const { network, height, due } of scans) {
    if (!services.networks.has(network)) continue
    const tip = await services.networks
      .client(network)
      .tip()
      .catch(() => null)
    if (tip === null || Number(height) < tip.height - TIP_SLACK || due)
      waiting.push(
        `${network}: scanned to block ${height} of ${tip?.height ?? 'an endpoint that cannot be reached'}`,
      )
  }
  return waiting
}

/**
 * Tolerated distance to the head in blocks, because a chain with very short block times is never
 * scanned exactly to its head.
 */
const TIP_SLACK = 2

async function unconfirmed(services: Services, ids: readonly string[]): Promise<string[]> {
  const rows = await services.database.query<{
    id: string
    network: string
    state: string
    last_error: string | null
  }>(
    `select id, network, state, last_error from transactions where id::text = any($1)
      and status = 'pending'`,
    [ids],
  )
  return rows.map(
    ({ id, network, state, last_error: error }) =>
      `${network}: ${id} is ${state}${error === null ? '' : ` (${error})`}`,
  )
}

async function lostRules(services: Services, history: History): Promise<ReconcileReport['rules']> {
  const existing = new Set(
    (
      await services.database.query<{ id: string }>(
        'select id::text from forward_rules where id::text = any($1)',
        [history.rules.map(({ rule }) => rule)],
      )
    ).map(({ id }) => id),
  )
  const ended = (each: History['rules'][0]) =>
    history.voided.has(JSON.stringify(['rule', each.workspace, each.sub_account, each.rule]))
  return history.rules
    .filter((each) => !existing.has(each.rule) && !ended(each))
    .map(({ rule, workspace, asset, destination }) => ({ rule, workspace, asset, destination }))
}

async function depositsSince(services: Services, since: Date): Promise<Deposit[]> {
  const rows = await services.database.query<Deposit>(
    `select t.id, w.name workspace, t.asset, t.amount::text, t.destination_id address,
       t.address_tag tag, t.hash, t.state
       from transactions t join workspaces w on w.id = t.workspace_id
     where t.kind in ('DEPOSIT', 'TANK_DEPOSIT') and t.created_at >= $1 order by t.created_at, t.id`,
    [since],
  )
  return rows.map((row) => ({ ...row, amount: show(services, row.asset, BigInt(row.amount)) }))
}
