import { RpcUnavailable, type Network, type Registry } from '@custody/chains'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Aml } from '../aml/aml.ts'
import type { Prices } from '../prices/prices.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { depositsConfirmedByQuorum, type ConfirmedDeposit } from './confirmed-by-quorum.ts'
import { adoptedDue, stillHeld } from './adopted.ts'
import { depthReached } from './screening.ts'

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

/**
 * Number of blocks with deposits that are checked with several endpoints concurrently, so that a
 * slow endpoint does not delay the scanner once per block.
 */
const AGREED_TOGETHER = 8

/**
 * SQL condition on `transactions t`: a deposit of network $1 that waits for its depth. Written to
 * use the index of a network's pending transactions.
 */
export const WAITS_FOR_DEPTH = `t.network = $1 and t.status = 'pending' and t.state = 'CONFIRMING' and t.kind in ('DEPOSIT', 'TANK_DEPOSIT')`

type Row = ConfirmedDeposit &
  Pick<TransactionRow, 'workspace_id' | 'confirmations'> & {
    block_height: string
    block_hash: string
    coinbase: boolean
    adopted: boolean
    claimed: boolean
  }
const blockOf = ({ block_height: height, block_hash: hash }: Row) => ({
  height: Number(height),
  hash,
})

/** Whether the balance of its address must confirm a deposit before it is credited. */
const isUnproven = ({ adopted, claimed }: Row): boolean => adopted || claimed

/** Returns the highest block whose deposits of this kind are at their depth. */
function dueHeight(network: Network, row: Row, final: number, scanned: number): number {
  // A coinbase output is credited once the next block may spend it.
  if (row.coinbase) return Math.min(final, scanned + 1 - (network.utxo?.coinbase_maturity ?? 0))
  return isUnproven(row) ? adoptedDue(network, final, scanned) : final
}

/**
 * Passes every deposit at or below the final height on to screening, and updates the confirmations
 * of the others.
 */
export async function creditReady(
  services: Services,
  chain: Chain,
  { height: scanned, hash }: { height: number; hash: string | undefined },
  final: number,
): Promise<void> {
  const { network } = chain
  const rows = await services.database.query<Row>(
    `select t.id, t.workspace_id, t.confirmations, d.block_height::text, d.block_hash, d.coinbase,
       d.adopted, d.claimed,
       d.txid, d.position, d.address, d.asset, d.amount::text, d.tag, d.occurrence,
       d.refuted_at
     from transactions t join deposits d on d.workspace_id = t.workspace_id
       and d.transaction_id = t.id
     where ${WAITS_FOR_DEPTH} and d.block_height is not null and not exists (
       select 1 from network_scans where network = $1 and contradiction is not null)`,
    [network.code],
  )
  const shown: { workspace: string; id: string; confirmations: number }[] = []
  const unproven: Row[] = []
  const due: Row[] = []
  const confirmationsOf = (row: Row) => scanned - Number(row.block_height) + 1
  const deep = async (row: Row) => {
    await services.database.transaction(async (tx) => {
      const fresh = await tx.one<TransactionRow>(
        `select t.* from transactions t
        join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
        where t.workspace_id = $3 and t.id = $1 and t.state = 'CONFIRMING' and d.block_height = $2
          and d.block_hash = $4 for update of t`,
        [row.id, row.block_height, row.workspace_id, row.block_hash],
      )
      if (fresh) await depthReached(services, tx, fresh, confirmationsOf(row))
    })
    services.environment.checkpoint('deposit.deep')
  }
  for (const row of rows) {
    const confirmations = confirmationsOf(row)
    if (Number(row.block_height) > dueHeight(network, row, final, scanned)) {
      if (confirmations !== row.confirmations)
        shown.push({ workspace: row.workspace_id, id: row.id, confirmations })
      continue
    }
    if (isUnproven(row)) unproven.push(row)
    else due.push(row)
  }
  let failed: unknown
  const blocks = [...Map.groupBy(due, ({ block_hash: block }) => block).values()]
  for (let at = 0; at < blocks.length; at += AGREED_TOGETHER) {
    const agreed = await Promise.allSettled(
      blocks
        .slice(at, at + AGREED_TOGETHER)
        .map((rows) => depositsConfirmedByQuorum(services, chain, blockOf(rows[0] as Row), rows)),
    )
    for (const answer of agreed) {
      if (answer.status === 'fulfilled') for (const row of answer.value) await deep(row)
      // A block that endpoints do not agree on does not delay other blocks.
      else if (answer.reason instanceof RpcUnavailable) failed ??= answer.reason
      else throw answer.reason
    }
  }
  if (shown.length > 0) await showConfirmations(services, shown)
  // This is done last, because it queries the chain.
  if (hash !== undefined)
    for await (const row of stillHeld(services, network, unproven, { height: scanned, hash }))
      await deep(row)
  if (failed !== undefined) throw failed
}

async function showConfirmations(
  services: Services,
  shown: readonly { workspace: string; id: string; confirmations: number }[],
): Promise<void> {
  await services.database.query(
    `update transactions t set confirmations = s.confirmations, updated_at = $3
     from unnest($4::uuid[], $1::uuid[], $2::integer[]) s (workspace_id, id, confirmations)
     where t.workspace_id = s.workspace_id and t.id = s.id and t.state = 'CONFIRMING'`,
    [
      shown.map(({ id }) => id),
      shown.map(({ confirmations }) => confirmations),
      services.database.now(),
      shown.map(({ workspace }) => workspace),
    ],
  )
}
