import { RpcRefused, type ChainTransfer } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Chain, Mempool } from '../../core/engine/chain.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import type { Checkout } from './present.ts'
import { shared } from '../../core/engine/shared.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  log: Logger
  checkout: Checkout
}

/**
 * Maximum number of transactions that are read in one pass. The next pass, which starts
 * immediately, reads the others.
 */
const READ_PER_LOOK = 400
/**
 * Maximum number of transactions that are read of those that were in the mempool before the first
 * pass: a full mempool of Bitcoin would require 100,000 requests.
 */
const BACKLOG_MAX = 2000
/**
 * Additional pause in milliseconds for each ID, because the ID list of a large mempool is a large
 * response.
 */
const PAUSE_MS_PER_ID = 0.2
/**
 * Delay in milliseconds after which an endpoint that does not expose its mempool is queried again.
 */
const REFUSED_WAIT_MS = 60_000
/**
 * Maximum number of payments per pass that are queried because they have left the mempool without a
 * block.
 */
const GONE_PER_LOOK = 50

/**
 * Networks on which a payment may be expected: an invoice is open, or a payment was seen that is in
 * no block yet.
 */
const AWAITED = `select distinct o.network from invoices i
    join invoice_offers o on o.workspace_id = i.workspace_id and o.invoice_id = i.id
  where i.status in ('Pending', 'Processing') and o.address is not null
  union select distinct network from invoice_mempool where waiting`

async function awaitedNetworks({ database }: Pick<Services, 'database'>): Promise<Set<string>> {
  return new Set(
    (await database.query<{ network: string }>(AWAITED, [])).map(({ network }) => network),
  )
}

/**
 * State of a mempool that a process keeps between two passes. A new process reads the mempool from
 * the start.
 */
export class PoolMemory {
  /**
   * IDs that were in the mempool at the last pass and were read, or skipped because there were too
   * many. Null before the first pass.
   */
  seen: Set<string> | null = null
  /** Payments that were missing at the last pass. */
  missing: ReadonlySet<string> = new Set()
  /** Time at which the whole mempool was last known. */
  knownAt: Date | null = null
}

/**
 * Reads the mempool once, and updates the invoices that its transactions pay, or no longer pay.
 * Such a payment is never credited; it makes an invoice Processing.
 * @returns the number of transactions in the mempool, and whether some are still to be read
 */
export async function lookAtMempool(
  services: Services,
  { network, client }: Pick<Chain, 'network' | 'client'>,
  mempool: Mempool,
  memory: PoolMemory,
): Promise<{ size: number; more: boolean }> {
  const askedAt = new Date(services.environment.now())
  const ids = await mempool.waiting()
  const first = memory.seen === null
  const existing = memory.seen ?? new Set<string>()
  const unread = ids.filter((id) => !existing.has(id))
  const skipped = first ? unread.splice(BACKLOG_MAX) : []
  if (skipped.length > 0) {
    services.log.info(
      { network: network.code, waiting: ids.length, skipped: skipped.length },
      'unconfirmed transactions were skipped; payments in them appear when they are in a block',
    )
  }
  const batch = unread.slice(0, READ_PER_LOOK)
  const transfers = batch.length > 0 ? await mempool.transfers(batch) : []
  const seen = transfers.filter(
    ({ asset, coinbase }) => asset === network.native_asset && !coinbase,
  )
  let moved = await noteSeen(services, network.code, seen, memory.knownAt)
  const waiting = new Set(ids)
  memory.seen = new Set([...existing, ...skipped, ...batch].filter((id) => waiting.has(id)))
  const more = unread.length > batch.length
  if (!more) memory.knownAt = askedAt

  // One of several nodes behind an endpoint may not have received the transaction yet, so only
  // transactions that are missing twice are queried.
  const missing = (await unconfirmed(services, network.code)).filter((txid) => !waiting.has(txid))
  for (const txid of missing.filter((each) => memory.missing.has(each)).slice(0, GONE_PER_LOOK)) {
    // A transaction in a block becomes a deposit when the block is scanned.
    if ((await client.status(txid)).state === 'absent')
      moved = (await noteGone(services, network.code, txid)) || moved
  }
  memory.missing = new Set(missing)
  if (moved) services.checkout.moved.ring()
  return { size: ids.length, more }
}

/**
 * Sums the payments of each transaction to each invoice, and stores new ones.
 * @returns whether there are new ones
 */
async function noteSeen(
  services: Services,
  network: string,
  transfers: readonly ChainTransfer[],
  knownAt: Date | null,
): Promise<boolean> {
  if (transfers.length === 0) return false
  const rows = transfers.map(({ txid, asset, address, amount }) => ({
    txid,
    asset,
    address,
    amount: amount.toString(),
  }))
  // If this process has not read the whole mempool yet, the time of the chain's scan is used.
  const changed = await services.database.query(
    `with seen as (
       select s.txid, o.workspace_id, o.invoice_id, s.asset, sum(s.amount) amount
       from jsonb_to_recordset($2) as s(txid text, asset text, address text, amount numeric)
         join invoice_offers o on o.network = $1 and o.address = s.address and o.address_tag is null
       group by s.txid, o.workspace_id, o.invoice_id, s.asset
     ), written as (
       insert into invoice_mempool as m (workspace_id, network, txid, invoice_id, asset, amount,
         seen_at, known_at)
       select workspace_id, $1, txid, invoice_id, asset, amount, $3,
         least($3, coalesce($4, (select known_at from network_scans where network = $1), $3))
       from seen
       on conflict (workspace_id, network, txid, invoice_id) do update set waiting = true
         where not m.waiting
       returning workspace_id, invoice_id
     )
     update invoices i set due_at = $3 from written w where i.workspace_id = w.workspace_id
       and i.id = w.invoice_id returning 1`,
    [network, JSON.stringify(rows), services.database.now(), knownAt],
  )
  services.environment.checkpoint('mempool.seen')
  return changed.length > 0
}

/**
 * Returns payments that were seen and are not known to be in a block. Those that are in a block by
 * now are marked as no longer waiting.
 */
async function unconfirmed({ database }: Services, network: string): Promise<string[]> {
  await database.query(
    `update invoice_mempool m set waiting = false
     from deposits d join invoice_offers o on o.workspace_id = d.workspace_id
       and o.network = d.network and o.address = d.address
     where m.workspace_id = d.workspace_id and m.network = $1 and m.waiting and d.network = $1
       and d.txid = m.txid
       and o.invoice_id = m.invoice_id and d.block_hash is not null`,
    [network],
  )
  const rows = await database.query<{ txid: string }>(
    'select distinct txid from invoice_mempool where network = $1 and waiting',
    [network],
  )
  return rows.map(({ txid }) => txid)
}

/** Records that a transaction was replaced, or dropped by the node. */
async function noteGone({ database }: Services, network: string, txid: string): Promise<boolean> {
  const rows = await database.query(
    `with gone as (
       update invoice_mempool set waiting = false where network = $1 and txid = $2 and waiting
         returning workspace_id, invoice_id
     ) update invoices i set due_at = $3 from gone g where i.workspace_id = g.workspace_id
       and i.id = g.invoice_id returning 1`,
    [network, txid, database.now()],
  )
  return rows.length > 0
}

/**
 * Returns a function that returns the networks on which a payment may be expected. Loops with the
 * same interval share one query.
 */
export function awaitedNetworksShared(
  services: Pick<Services, 'settings' | 'environment' | 'database'>,
): () => Promise<Set<string>> {
  return shared(
    () => awaitedNetworks(services),
    services.settings.pollMs * 0.9,
    () => services.environment.now(),
  )
}

/**
 * Creates the loop that monitors the mempool of one network while payments of invoices are expected
 * there.
 */
export function mempoolLoop(
  services: Services,
  chain: Chain,
  mempool: Mempool,
  awaited: () => Promise<Set<string>>,
): Loop {
  const { code } = chain.network
  let memory = new PoolMemory()
  let refused = false
  return {
    name: `mempool ${code}`,
    everyMs: services.settings.pollMs,
    async run(signal) {
      if (!(await awaited()).has(code)) {
        memory = new PoolMemory()
        return false
      }
      try {
        const { size, more } = await lookAtMempool(services, chain, mempool, memory)
        if (!more) await services.environment.sleep(size * PAUSE_MS_PER_ID, signal)
        return more
      } catch (error) {
        if (!(error instanceof RpcRefused)) throw error
        if (!refused) {
          const where = { network: code, err: reasonOf(error) }
          services.log.warn(
            where,
            'the endpoint does not return unconfirmed transactions: payments appear when they are in a block',
          )
        }
        refused = true
        await services.environment.sleep(REFUSED_WAIT_MS, signal)
        return false
      }
    },
  }
}
