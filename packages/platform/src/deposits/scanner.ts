import type { ChainBlock, ChainTip, Network } from '@custody/chains'
import { isStarted } from '../addresses/start-scan.ts'
import type { Queryable } from '../database/pool.ts'
import type { Services } from '../engine/services.ts'
import type { Chain } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { wake } from '../engine/lease.ts'
import type { Loop } from '../engine/loop.ts'
import { depthReached } from './screening.ts'
import { revert } from './credit.ts'
import { findDeposits, recordDeposit } from './record.ts'
import { recordRiders } from './riders.ts'

const SCAN_LEASE_MS = 20_000
const BLOCKS_PER_RUN = 50
/** Blocks remembered per network; a reorganisation deeper than this stops the scanner with an error. */
const BLOCKS_KEPT = 2000
/** So many are forgotten at once. */
const BLOCKS_FORGOTTEN = 100

/** While a chain stands still the database is asked for what else may be due this often only. */
const FULL_PASS_MS = 5000

/** `known_at`: when the chain was last known up to its tip. */
interface Scan { height: string; lease_token: string; known_at: Date | null }

const isSame = (a: ChainTip, b: ChainTip): boolean => a.hash === b.hash && a.height === b.height && a.finalHeight === b.finalHeight

/** Follows one network block by block: finds deposits, credits them at depth, walks back over reorganisations. */
export function scanLoop(services: Services, chain: Chain, startedNetworks: () => Promise<Set<string>>): Loop {
  const { network } = chain
  let started = false
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
      started ||= (await startedNetworks()).has(network.code)
      if (!started) return false
      if (!probed) {
        await chain.client.probe()
        probed = true
      }
      const now = services.environment.now()
      const tip = await chain.client.tip()
      if (done !== null && now - done.at < FULL_PASS_MS && isSame(done.tip, tip)) {
        knownAt = new Date(now)
        services.metrics.scannedAt.labels(network.code).set(now / 1000)
        return false
      }
      done = null
      const scan = await services.database.one<Scan>(
        `update network_scans set lease_until = $3::timestamptz + $2 * interval '1 millisecond', lease_token = gen_random_uuid()
         where network = $1 and height is not null and (lease_until is null or lease_until < $3)
         returning height::text, lease_token, known_at`,
        [network.code, SCAN_LEASE_MS, services.database.now()])
      if (!scan) return false
      try {
        const more = await scanOnce(services, chain, { ...scan, known_at: knownAt ?? scan.known_at }, tip, new Date(now))
        if (!more) {
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
async function scanOnce(services: Services, chain: Chain, scan: Scan, tip: ChainTip, askedAt: Date): Promise<boolean> {
  const { network, client } = chain
  const final = tip.finalHeight ?? tip.height - (network.confirmations ?? 1) + 1
  let height = Number(scan.height)
  let moved = false
  let last = await hashAt(services, network, height)
  const back = async () => {
    height = await walkBack(services, chain, scan, height)
    last = await hashAt(services, network, height)
  }
  if (tip.height < height || (tip.height === height && last !== tip.hash)) await back()
  for (let count = 0; count < BLOCKS_PER_RUN && height < tip.height; count++) {
    const block = await client.block(height + 1)
    if (!block) break
    if (last !== undefined && last !== block.parent) {
      await back()
      continue
    }
    const deposits = await findDeposits(services, network, block)
    await services.database.transaction(async (tx) => {
      await move(tx, network, scan, { height: block.height, tip: tip.height, final, askedAt })
      await rememberBlock(tx, network, block)
      for (const deposit of deposits) await recordDeposit(services, tx, network, block, deposit, scan.known_at ?? askedAt)
      await recordRiders(tx, network, block)
      if (block.txids.length > 0) {
        await tx.query('update utxos set block_height = $3 where network = $1 and txid = any($2) and block_height is distinct from $3', [
          network.code, block.txids, block.height,
        ])
      }
      await wake(tx, network.code)
    })
    services.environment.checkpoint('scan.block')
    height = block.height
    last = block.hash
    moved = true
    services.metrics.scanned.labels(network.code).set(height)
  }
  if (!moved) {
    const changed = await services.database.query(`update network_scans set tip_height = $3, final_height = $4
      where network = $1 and lease_token = $2 and final_height <> $4 returning 1`, [network.code, scan.lease_token, tip.height, final])
    if (changed.length > 0) await wake(services.database, network.code)
  }
  await creditReady(services, network, height, final)
  return height < tip.height
}

async function hashAt(services: Services, network: Network, height: number): Promise<string | undefined> {
  const known = await services.database.one<{ hash: string }>(
    'select hash from blocks where network = $1 and height = $2', [network.code, height]
  )
  return known?.hash
}

/** Writes the position; throws where another scanner has taken over. */
async function move(
  tx: Queryable, network: Network, scan: Scan,
  { height, tip, final, askedAt }: { height: number; tip: number; final: number; askedAt: Date },
): Promise<void> {
  const rows = await tx.query(
    `update network_scans set height = $3, tip_height = $4, final_height = $5, updated_at = $6,
       known_at = case when $3::bigint >= $4::bigint then $7 else known_at end
     where network = $1 and lease_token = $2 returning 1`,
    [network.code, scan.lease_token, height, tip, final, tx.now(), askedAt])
  if (rows.length !== 1) throw new Error(`the scan of ${network.code} was taken over`)
}

async function rememberBlock(tx: Queryable, network: Network, block: ChainBlock): Promise<void> {
  await tx.query(
    `insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4)
     on conflict (network, height) do update set hash = excluded.hash, parent = excluded.parent`,
    [network.code, block.height, block.hash, block.parent])
  if (block.height % BLOCKS_FORGOTTEN === 0) {
    await tx.query('delete from blocks where network = $1 and height < $2', [network.code, block.height - BLOCKS_KEPT])
  }
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
    const gone = await tx.query<TransactionRow>(
      `select t.* from transactions t join deposits d on d.transaction_id = t.id
       where d.network = $1 and d.block_height > $2 for update of t`, [network.code, height])
    for (const row of gone) await revert(services, tx, row)
    await tx.query(
      `update utxos set block_height = null, spendable = (origin = 'change' and not contested) where network = $1 and block_height > $2`,
      [network.code, height]
    )
    await tx.query('delete from blocks where network = $1 and height > $2', [network.code, height])
    await tx.query('update network_scans set height = $3 where network = $1 and lease_token = $2', [network.code, scan.lease_token, height])
    await wake(tx, network.code)
  })
  services.log.warn({ network: network.code, from, to: height }, 'the chain was reorganised')
  return height
}

/** Sends every deposit at or below the final height on to its screening, and shows the others' confirmations. */
async function creditReady(services: Services, network: Network, scanned: number, final: number): Promise<void> {
  const rows = await services.database.query<TransactionRow & { block_height: string; coinbase: boolean }>(
    `select t.*, d.block_height::text, d.coinbase from transactions t join deposits d on d.transaction_id = t.id
     where t.network = $1 and t.state = 'CONFIRMING' and t.kind in ('DEPOSIT', 'TANK_DEPOSIT')
       and d.block_height is not null`, [network.code])
  for (const row of rows) {
    const confirmations = scanned - Number(row.block_height) + 1
    // A coinbase is credited when the next block may spend it.
    const due = row.coinbase ? Math.min(final, scanned + 1 - (network.utxo?.coinbase_maturity ?? 0)) : final
    if (Number(row.block_height) > due) {
      if (confirmations !== row.confirmations) {
        await services.database.query('update transactions set confirmations = $2, updated_at = $3 where id = $1', [
          row.id, confirmations, services.database.now(),
        ])
      }
      continue
    }
    await services.database.transaction(async (tx) => {
      const fresh = await tx.one<TransactionRow>(`select t.* from transactions t join deposits d on d.transaction_id = t.id
        where t.id = $1 and t.state = 'CONFIRMING' and d.block_height = $2 for update of t`, [row.id, row.block_height])
      if (fresh) await depthReached(services, tx, fresh, confirmations)
    })
    services.environment.checkpoint('deposit.deep')
  }
}
