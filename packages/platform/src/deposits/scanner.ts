import { traitsOf, type ChainBlock, type ChainTip, type Network } from '@custody/chains'
import { isStarted } from '../addresses/start-scan.ts'
import type { Queryable } from '../database/pool.ts'
import type { Services } from '../engine/services.ts'
import type { Chain } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { AWAITS_CHAIN, wake } from '../engine/lease.ts'
import type { Loop } from '../engine/loop.ts'
import { BlocksAhead } from './blocks-ahead.ts'
import { depthReached } from './screening.ts'
import { revert } from './credit.ts'
import { findDeposits, recordDeposit } from './record.ts'
import { hasRiders, recordRiders } from './riders.ts'

const SCAN_LEASE_MS = 20_000
/** A run ends after so many turns, or when half of its lease is over: it is called again at once. */
const TURNS_PER_RUN = 50
/** Blocks remembered per network; a reorganisation deeper than this stops the scanner with an error. */
const BLOCKS_KEPT = 2000
/** They are forgotten when a height has been passed that this divides. */
const BLOCKS_FORGOTTEN = 100

/** While a chain stands still the database is asked for what else may be due this often only. */
const FULL_PASS_MS = 5000

/** `known_at`: when the chain was last known up to its tip. `hash`: of the block at `height`, where it is kept. */
interface Scan { height: string; lease_token: string; known_at: Date | null; hash: string | null }

/** What one pass came to. `more`: blocks are left that can be had now; `isKnown`: all up to the tip were read. */
interface Pass { more: boolean; isKnown: boolean }

/**
 * The highest block that is final once those up to `read` were read. Where depth decides, blocks that an endpoint only tells of bury
 * nothing; where the chain says what is final and its endpoint does not, nothing is.
 */
const finalAt = ({ confirmations }: Network, tip: ChainTip, read: number): number =>
  tip.finalHeight ?? (confirmations === null ? 0 : read - confirmations + 1)

const isSame = (a: ChainTip, b: ChainTip): boolean => a.hash === b.hash && a.height === b.height && a.finalHeight === b.finalHeight

/**
 * Follows one network block by block: finds deposits, credits them at depth, walks back over reorganisations.
 * @param followed networks that this process is to follow now: what it knew of one it forgets when it is another's
 */
export function scanLoop(services: Services, chain: Chain, followed: () => Promise<Set<string>>): Loop {
  const { network } = chain
  let probed = false
  /** The tip at which a pass found nothing left to do, and when. */
  let done: { tip: ChainTip; at: number } | null = null
  /** When this process last knew the chain up to its tip. */
  let knownAt: Date | null = null
  return {
    name: `scan ${network.code}`,
    everyMs: services.settings.pollMs,
    due: isStarted(network),
    async run() {
      // Until an address of ours exists on it the network is left alone: a local chain starts on first use.
      if (!(await followed()).has(network.code)) {
        done = null
        knownAt = null
        return false
      }
      if (!probed) {
        await chain.client.probe()
        probed = true
      }
      const now = services.environment.now()
      const tip = await chain.client.tip()
      if (done !== null && Math.abs(now - done.at) < FULL_PASS_MS && isSame(done.tip, tip)) {
        knownAt = new Date(now)
        services.metrics.scannedAt.labels(network.code).set(now / 1000)
        return false
      }
      done = null
      const scan = await services.database.one<Scan>(
        `update network_scans set lease_until = $3::timestamptz + $2 * interval '1 millisecond', lease_token = gen_random_uuid()
         where network = $1 and height is not null and (lease_until is null or lease_until < $3)
         returning height::text, lease_token, known_at,
           (select hash from blocks b where b.network = $1 and b.height = network_scans.height) hash`,
        [network.code, SCAN_LEASE_MS, services.database.now()])
      if (!scan) return false
      try {
        const { more, isKnown } = await scanOnce(services, chain, { ...scan, known_at: knownAt ?? scan.known_at }, tip, new Date(now))
        services.work.ring()
        if (isKnown) {
          knownAt = new Date(now)
          services.metrics.scannedAt.labels(network.code).set(services.environment.now() / 1000)
          done = { tip, at: now }
        }
        return more
      } finally {
        await services.database.query('update network_scans set lease_until = null where network = $1 and lease_token = $2', [
          network.code, scan.lease_token,
        ])
      }
    },
  }
}

/** @param askedAt when the tip was asked for */
async function scanOnce(services: Services, chain: Chain, scan: Scan, tip: ChainTip, askedAt: Date): Promise<Pass> {
  const { network, client } = chain
  let height = Number(scan.height)
  let moved = false
  let isShort = false
  let last = scan.hash ?? undefined
  const back = async () => {
    height = await walkBack(services, chain, scan, height)
    last = await hashAt(services, network, height)
  }
  if (tip.height < height || (tip.height === height && last !== tip.hash)) await back()
  const ahead = new BlocksAhead(client)
  const until = services.environment.now() + SCAN_LEASE_MS / 2
  for (let turn = 0; turn < TURNS_PER_RUN && height < tip.height && services.environment.now() < until; turn++) {
    const blocks = following(last, await ahead.take(height + 1, tip.height))
    if (blocks === null) {
      ahead.drop()
      await back()
      continue
    }
    const newest = blocks.at(-1)
    if (!newest) {
      // A head that the endpoint cannot show: asking on at once would be asking for ever.
      isShort = true
      break
    }
    const [deposits, coins] = await Promise.all([findDeposits(services, network, blocks), placedCoins(services.database, network, blocks)])
    const write = (tx: Queryable) => move(tx, network, scan, blocks, {
      tip: tip.height, final: finalAt(network, tip, newest.height), askedAt,
    })
    const hasOurs = coins.size > 0 || deposits.some(({ length }) => length > 0) || blocks.some(hasRiders)
    // Most blocks hold nothing of ours: one statement says so.
    if (!hasOurs) await write(services.database)
    else {
      await services.database.transaction(async (tx) => {
        await write(tx)
        for (const [at, block] of blocks.entries()) {
          for (const deposit of deposits[at] ?? []) await recordDeposit(services, tx, network, block, deposit, scan.known_at ?? askedAt)
          await recordRiders(tx, network, block)
        }
        if (coins.size > 0) {
          await tx.query(
            `update utxos u set block_height = b.height from unnest($2::text[], $3::bigint[]) b (txid, height)
             where u.network = $1 and u.txid = b.txid and u.block_height is distinct from b.height`,
            [network.code, [...coins.keys()], [...coins.values()]])
        }
      })
    }
    services.environment.checkpoint('scan.block')
    height = newest.height
    last = newest.hash
    moved = true
    services.metrics.scanned.labels(network.code).set(height)
  }
  const final = finalAt(network, tip, height)
  if (!moved) {
    const changed = await services.database.query(`update network_scans set tip_height = $3, final_height = $4
      where network = $1 and lease_token = $2 and final_height <> $4 returning 1`, [network.code, scan.lease_token, tip.height, final])
    if (changed.length > 0) await wake(services.database, network.code)
  }
  await creditReady(services, network, height, final)
  return { more: height < tip.height && !isShort, isKnown: height >= tip.height }
}

async function hashAt(services: Services, network: Network, height: number): Promise<string | undefined> {
  const known = await services.database.one<{ hash: string }>(
    'select hash from blocks where network = $1 and height = $2', [network.code, height]
  )
  return known?.hash
}

/**
 * Writes the position and the blocks that led to it, and makes what waits for the chain due (as `wake` does), in one statement.
 * @throws where another scanner has taken over: nothing is written
 */
async function move(
  tx: Queryable, network: Network, scan: Scan, blocks: readonly ChainBlock[],
  { tip, final, askedAt }: { tip: number; final: number; askedAt: Date },
): Promise<void> {
  const rows = await tx.query(
    `with moved as (
       update network_scans set height = $3, tip_height = $4, final_height = $5, updated_at = $6,
         known_at = case when $3::bigint >= $4::bigint then $7 else known_at end
       where network = $1 and lease_token = $2 returning 1
     ), kept as (
       insert into blocks (network, height, hash, parent)
         select $1, b.* from unnest($8::bigint[], $9::text[], $10::text[]) b where exists (select 1 from moved)
       on conflict (network, height) do update set hash = excluded.hash, parent = excluded.parent
     ), forgotten as (
       delete from blocks where network = $1 and height < $11::bigint and exists (select 1 from moved)
     ), woken as (
       update transactions set next_run_at = $6 where network = $1 and ${AWAITS_CHAIN} and exists (select 1 from moved)
     ) select 1 from moved`,
    [network.code, scan.lease_token, blocks.at(-1)?.height, tip, final, tx.now(), askedAt,
      blocks.map(({ height }) => height), blocks.map(({ hash }) => hash), blocks.map(({ parent }) => parent),
      (blocks.find(({ height }) => height % BLOCKS_FORGOTTEN === 0)?.height ?? 0) - BLOCKS_KEPT])
  if (rows.length !== 1) throw new Error(`the scan of ${network.code} was taken over`)
}

/** Of blocks that were asked for apart those that stand on one another and on `last`; null: the first does not stand on it. */
function following(last: string | undefined, blocks: readonly ChainBlock[]): ChainBlock[] | null {
  const [first] = blocks
  if (first && last !== undefined && first.parent !== last) return null
  const end = blocks.findIndex((block, at) => at > 0 && block.parent !== blocks[at - 1]?.hash)
  return blocks.slice(0, end === -1 ? blocks.length : end)
}

/** Which of our coins that no block held yet these blocks hold, by transaction. Where no coins are spent, there are none. */
async function placedCoins(tx: Queryable, network: Network, blocks: readonly ChainBlock[]): Promise<Map<string, number>> {
  if (traitsOf(network).deposits !== 'spendable') return new Map()
  const waiting = await tx.query<{ txid: string }>(
    'select distinct txid from utxos where network = $1 and block_height is null', [network.code])
  if (waiting.length === 0) return new Map()
  const heights = new Map(blocks.flatMap(({ height, txids }) => txids.map((txid) => [txid, height])))
  return new Map(waiting.flatMap(({ txid }) => {
    const height = heights.get(txid)
    return height === undefined ? [] : [[txid, height]]
  }))
}

/** Goes back to the last block that is still part of the chain and takes back what stood in the others. */
async function walkBack(services: Services, { network, client }: Chain, scan: Scan, from: number): Promise<number> {
  let height = from
  let differs = false
  for (;;) {
    const known = await hashAt(services, network, height)
    if (known === undefined) {
      throw new Error(`${network.code}: a reorganisation goes back further than the ${BLOCKS_KEPT} blocks that are kept`)
    }
    const block = await client.block(height)
    if (block && block.hash === known) break
    differs ||= block !== null
    height--
  }
  // Heights that a lagging endpoint does not know yet are no reorganisation.
  if (!differs) return from
  await services.database.transaction(async (tx) => {
    // First: one that was asleep meanwhile must not take back what another has read since.
    const moved = await tx.query('update network_scans set height = $3 where network = $1 and lease_token = $2 returning 1', [
      network.code, scan.lease_token, height,
    ])
    if (moved.length !== 1) throw new Error(`the scan of ${network.code} was taken over`)
    const gone = await tx.query<TransactionRow>(
      `select t.* from transactions t join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
       where d.network = $1 and d.block_height > $2 for update of t`, [network.code, height])
    for (const row of gone) await revert(services, tx, row)
    await tx.query(
      `update utxos set block_height = null, spendable = (origin = 'change' and not contested) where network = $1 and block_height > $2`,
      [network.code, height]
    )
    await tx.query('delete from blocks where network = $1 and height > $2', [network.code, height])
    await wake(tx, network.code)
  })
  services.log.warn({ network: network.code, from, to: height }, 'the chain was reorganised')
  return height
}

/** Sends every deposit at or below the final height on to its screening, and shows the others' confirmations. */
async function creditReady(services: Services, network: Network, scanned: number, final: number): Promise<void> {
  // By the index of what is under way on a network.
  const rows = await services.database.query<
    Pick<TransactionRow, 'id' | 'workspace_id' | 'confirmations'> & { block_height: string; coinbase: boolean }
  >(
    `select t.id, t.workspace_id, t.confirmations, d.block_height::text, d.coinbase
     from transactions t join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
     where t.network = $1 and t.status = 'pending' and t.state = 'CONFIRMING' and t.kind in ('DEPOSIT', 'TANK_DEPOSIT')
       and d.block_height is not null`, [network.code])
  const shown: { workspace: string; id: string; confirmations: number }[] = []
  for (const row of rows) {
    const confirmations = scanned - Number(row.block_height) + 1
    // A coinbase is credited when the next block may spend it.
    const due = row.coinbase ? Math.min(final, scanned + 1 - (network.utxo?.coinbase_maturity ?? 0)) : final
    if (Number(row.block_height) > due) {
      if (confirmations !== row.confirmations) shown.push({ workspace: row.workspace_id, id: row.id, confirmations })
      continue
    }
    await services.database.transaction(async (tx) => {
      const fresh = await tx.one<TransactionRow>(`select t.* from transactions t
        join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
        where t.workspace_id = $3 and t.id = $1 and t.state = 'CONFIRMING' and d.block_height = $2 for update of t`,
      [row.id, row.block_height, row.workspace_id])
      if (fresh) await depthReached(services, tx, fresh, confirmations)
    })
    services.environment.checkpoint('deposit.deep')
  }
  if (shown.length === 0) return
  await services.database.query(
    `update transactions t set confirmations = s.confirmations, updated_at = $3
     from unnest($4::uuid[], $1::uuid[], $2::integer[]) s (workspace_id, id, confirmations)
     where t.workspace_id = s.workspace_id and t.id = s.id and t.state = 'CONFIRMING'`,
    [shown.map(({ id }) => id), shown.map(({ confirmations }) => confirmations), services.database.now(),
      shown.map(({ workspace }) => workspace)])
}
