import {
  traitsOf,
  type ChainBlock,
  type ChainClient,
  type Network,
  type Registry,
} from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { finalAt } from '../../core/engine/outcomes/final.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Environment } from '../../core/environment.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Aml } from '../aml/aml.ts'
import type { Prices } from '../prices/prices.ts'
import { revert } from './credit.ts'
import { nameInBlock, occurrences, recordedName, type RecordedPayment } from './identity.ts'
import { findDeposits, removeCoin, recordDeposit } from './record.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  metrics: Metrics
  log: Logger
  work: Notifier
  forwards: Forwards
  invoices: Invoices
  aml: Aml
  prices: Prices
}

/** A recorded deposit at its depth. `position` -1: native value of an account-based chain. */
export interface ConfirmedDeposit extends RecordedPayment {
  id: string
  workspace_id: string
  refuted_at: Date | null
}

type BlockName = Pick<ChainBlock, 'height' | 'hash'>

/**
 * What one endpoint returns for a block. `held`: ids of the recorded deposits that it contains.
 * `refuted`: ids of those that it does not contain, or whose transaction it contains as failed. A
 * deposit in neither is not known to the endpoint yet. `block`: its content, if it has the same hash;
 * null: the endpoint has another block there.
 */
interface Shown {
  held: ReadonlySet<string>
  refuted: ReadonlySet<string>
  block: ChainBlock | null
}

/**
 * Time in milliseconds for which a quorum must return a block without a recorded deposit before its
 * records are replaced. Nodes may have a block before they can return everything in it.
 */
const REFUTED_MS = 60_000

interface Answer extends Shown {
  endpoint: string
  client: ChainClient
}

/**
 * Returns what one endpoint returns for a block; null if the endpoint has no final block at that
 * height yet. Each endpoint is judged by its own head: with the head of another endpoint, a block that
 * it does not have could appear final.
 */
async function shownBy(
  client: ChainClient,
  network: Network,
  { height, hash }: BlockName,
  deposits: readonly ConfirmedDeposit[],
): Promise<Shown | null> {
  const tip = await client.tip()
  if (height > finalAt(network, tip, tip.height)) return null
  const block = await client.block(height)
  if (block === null) return null
  const [held, refuted] = [new Set<string>(), new Set<string>()]
  if (block.hash !== hash) return { held, refuted, block: null }
  const shown = namesIn(network, block)
  for (const deposit of deposits) {
    if (!shown.has(recordedName(network, deposit))) {
      refuted.add(deposit.id)
      continue
    }
    if (deposit.position === -1) {
      // Native value moves only if the transaction succeeded, and blocks do not contain whether it
      // did.
      const status = await client.status(deposit.txid, undefined, { fee: false })
      if (status.state !== 'included' || status.blockHash !== hash) continue
      if (!status.succeeded) {
        refuted.add(deposit.id)
        continue
      }
    }
    held.add(deposit.id)
  }
  return { held, refuted, block }
}

/**
 * Returns the names of a block's transfers, with the address that each pays. Payments of contracts
 * are left out: an endpoint without a tracer does not dispute them, and balances confirm them.
 */
const namesIn = (network: Network, { transfers }: ChainBlock): Map<string, string> =>
  new Map(
    [...occurrences(transfers.filter(({ frame }) => !frame))].map(([transfer, occurrence]) => [
      nameInBlock(network, transfer, occurrence),
      transfer.address,
    ]),
  )

/**
 * Returns the deposits of a block that a quorum of endpoints reports; all of them if one endpoint
 * is sufficient. The other deposits wait. If a quorum returns other content of the same block, the
 * records are replaced by it, and the endpoints that returned something else are logged.
 */
export async function depositsConfirmedByQuorum<Deposit extends ConfirmedDeposit>(
  services: Services,
  { network, agreement }: Pick<Chain, 'network' | 'agreement'>,
  block: BlockName,
  deposits: readonly Deposit[],
): Promise<readonly Deposit[]> {
  if (!agreement) return deposits
  if (!agreement.isDue(block.hash, true)) return []
  const votes = new Map(deposits.map(({ id }) => [id, 0]))
  const isAgreed = ({ id }: Deposit) => (votes.get(id) ?? 0) >= agreement.quorum
  const answers: Answer[] = []
  for await (const { name: endpoint, answer } of agreement.votes(async (client) => {
    const shown = await shownBy(client, network, block, deposits)
    return shown && { ...shown, client }
  })) {
    if (answer === null) continue
    answers.push({ ...answer, endpoint })
    for (const id of answer.held) votes.set(id, (votes.get(id) ?? 0) + 1)
    if (deposits.every(isAgreed)) break
  }
  const doubted = deposits.filter((deposit) => !isAgreed(deposit))
  const agreed =
    doubted.length === 0
      ? null
      : await contentOfQuorum(services, network, answers, agreement.quorum)
  // What each of the quorum's endpoints refutes is false.
  const refuted = agreed
    ? doubted.filter(({ id }) => agreed.every((each) => each.refuted.has(id)))
    : []
  const gone = await refutedLongEnough(services.database, deposits, refuted)
  const [content] = agreed ?? []
  if (content && gone.length > 0) await replaceRecords(services, network, content, gone)
  const real = deposits.filter((each) => !refuted.includes(each))
  await report(services, network, block, { real, gone, answers })
  return deposits.filter(isAgreed)
}

/**
 * Notes which deposits a quorum refutes now, and returns those that it has refuted for
 * {@link REFUTED_MS}.
 */
async function refutedLongEnough(
  database: Database,
  deposits: readonly ConfirmedDeposit[],
  refuted: readonly ConfirmedDeposit[],
): Promise<ConfirmedDeposit[]> {
  const now = database.now()
  const changed = deposits.filter((each) => (each.refuted_at !== null) !== refuted.includes(each))
  if (changed.length > 0)
    await database.query(
      `update deposits d set refuted_at = case when d.refuted_at is null then $1::timestamptz end
       from unnest($2::uuid[], $3::uuid[]) c (workspace_id, id)
       where d.workspace_id = c.workspace_id and d.transaction_id = c.id`,
      [now, changed.map((each) => each.workspace_id), changed.map(({ id }) => id)],
    )
  return refuted.filter(
    ({ refuted_at: since }) => since !== null && now.getTime() - since.getTime() >= REFUTED_MS,
  )
}

/** Logs and counts the endpoints whose content of a block differs from the quorum's. */
async function report(
  { database, metrics, log }: Services,
  network: Network,
  { hash }: BlockName,
  {
    real,
    gone,
    answers,
  }: {
    real: readonly ConfirmedDeposit[]
    gone: readonly ConfirmedDeposit[]
    answers: readonly Answer[]
  },
): Promise<void> {
  const of = (endpoint: string, differing: readonly ConfirmedDeposit[]) => {
    metrics.endpointDisagreements.labels(network.code, endpoint).inc()
    return {
      network: network.code,
      endpoint,
      block: hash,
      deposits: differing.map(({ id }) => id),
    }
  }
  for (const { endpoint, held } of answers) {
    const missing = real.filter(({ id }) => !held.has(id))
    if (missing.length > 0)
      log.error(of(endpoint, missing), 'an endpoint does not return deposits that another returned')
  }
  if (gone.length === 0) return
  const first = await database.one<{ endpoint: string | null }>(
    'select endpoint from blocks where network = $1 and hash = $2',
    [network.code, hash],
  )
  const liars = answers.filter(({ held }) => gone.some(({ id }) => held.has(id)))
  for (const endpoint of new Set([
    first?.endpoint ?? 'unknown',
    ...liars.map((each) => each.endpoint),
  ]))
    log.error(
      of(endpoint, gone),
      'an endpoint returned deposits that a quorum of endpoints does not; the records of the block are replaced',
    )
}

/**
 * Returns the answers of at least a quorum of endpoints that agree on the transfers of a block to
 * platform addresses; null if fewer agree.
 */
async function contentOfQuorum(
  { database }: Services,
  network: Network,
  answers: readonly Answer[],
  quorum: number,
): Promise<(Answer & { block: ChainBlock })[] | null> {
  const whole = answers.flatMap((each) => (each.block ? [{ ...each, block: each.block }] : []))
  const paid = whole.flatMap(({ block }) => block.transfers.map(({ address }) => address))
  const own = new Set(
    (
      await database.query<{ address: string }>(
        'select address from chain_addresses where network = $1 and address = any($2)',
        [network.code, [...new Set(paid)]],
      )
    ).map(({ address }) => address),
  )
  const groups = Map.groupBy(whole, ({ block, held }) =>
    JSON.stringify([
      [...namesIn(network, block)]
        .flatMap(([each, address]) => (own.has(address) ? [each] : []))
        .sort(),
      [...held].sort(),
    ]),
  )
  return [...groups.values()].find((group) => group.length >= quorum) ?? null
}

/**
 * Replaces the recorded deposits of a block that a quorum of endpoints does not return by those that it
 * returns. Deposits that are no longer waiting for their depth stay.
 */
async function replaceRecords(
  services: Services,
  network: Network,
  { client, block }: { client: ChainClient; block: ChainBlock },
  gone: readonly ConfirmedDeposit[],
): Promise<void> {
  const { database } = services
  const all = (addresses: readonly string[]) => [...addresses]
  const [found = []] = await findDeposits(services, network, [block], all, client)
  const refuted = new Set(gone.map((deposit) => recordedName(network, deposit)))
  const matches = found.filter(
    ({ transfer, occurrence }) => !refuted.has(nameInBlock(network, transfer, occurrence)),
  )
  await database.transaction(async (tx) => {
    const isRead = await tx.one(
      `select 1 from network_scans s join blocks b on b.network = s.network
       where s.network = $1 and b.height = $2 and b.hash = $3 and s.height >= $2 for share of s`,
      [network.code, block.height, block.hash],
    )
    if (!isRead) return
    for (const { id, workspace_id: workspace, txid, position } of gone) {
      const row = await tx.one<TransactionRow>(
        `select t.* from transactions t join deposits d on d.workspace_id = t.workspace_id
           and d.transaction_id = t.id
         where t.workspace_id = $1 and t.id = $2 and t.state = 'CONFIRMING' and d.block_hash = $3
           and not d.adopted for update of t`,
        [workspace, id, block.hash],
      )
      if (!row) continue
      await revert(
        services,
        tx,
        row,
        'one endpoint returned it, and a quorum of the endpoints does not',
      )
      if (traitsOf(network).deposits === 'spendable')
        await removeCoin(tx, { workspace, network, txid, position })
    }
    for (const match of matches)
      await recordDeposit(services, tx, { network, block, match, knownAt: tx.now() })
  })
  services.work.ring()
}
