import {
  RpcUnavailable,
  type ChainBlock,
  type ChainTip,
  type Network,
  type Registry,
} from '@custody/chains'
import { isStarted } from '../addresses/start-scan.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Aml } from '../aml/aml.ts'
import type { Prices } from '../prices/prices.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Kinds } from '../../core/engine/interfaces/kind.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import { oneEndpoint } from '../../core/engine/endpoints/group.ts'
import { finalAt } from '../../core/engine/outcomes/final.ts'
import { undoAbove } from '../../core/engine/outcomes/undo.ts'
import { AWAITS_CHAIN, wake } from '../../core/engine/lease.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { BlocksAhead, following } from './blocks-ahead.ts'
import { findAside, recordAside, takeBackAside } from './coins-aside.ts'
import { revert } from './credit.ts'
import { creditReady, WAITS_FOR_DEPTH } from './credit-ready.ts'
import { placeCoins, placedCoins } from './coin-heights.ts'
import { assertMayTakeBack, contradictionEnded, type Differing } from './contradiction.ts'
import { checkMissing, missingAt, type MissingBlock } from './missing-block.ts'
import { BLOCKS_FORGOTTEN, forgetBlocks, forgottenBelow } from './forget-blocks.ts'
import { noteClaims } from './native/note-claims.ts'
import { findDeposits, recordDeposit } from './record.ts'
import { hasTokens, recordUtxoTokens } from './utxo-tokens.ts'
import { TakenOver, WatchedAddresses } from './watched.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
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
  kinds: Kinds
  keys: WorkspaceKeys
}

const SCAN_LEASE_MS = 20_000
/**
 * Maximum number of iterations per run. A run also ends when half of its lease is over; it is then
 * called again immediately.
 */
const TURNS_PER_RUN = 50
/** Interval in milliseconds at which a full pass runs while the head does not change. */
const FULL_PASS_MS = 5000

/**
 * State of a scan that this process has taken. It is kept between passes: each write of the
 * position sets a new token and succeeds only if the row still has the previous one. If the token
 * matches, the row is therefore as this process left it.
 */
interface Scan {
  token: string
  height: number
  /** Hash of the block at `height`, if it is stored. */
  hash: string | undefined
  /** When the chain was last read up to its head before this process took the scan. */
  knownAt: Date | null
  /** Whether the database has a lease that prevents other processes from taking the scan. */
  isLeased: boolean
  /** Token of a write whose result is not known yet. */
  next: string | null
  watched: WatchedAddresses
}

/**
 * Result of one pass. `more`: further blocks are available now; `isKnown`: all blocks up to the
 * head were read; `isShort`: the endpoint does not return the next block although it reports a
 * higher head.
 */
interface Pass {
  more: boolean
  isKnown: boolean
  isShort: boolean
}

const isSame = (a: ChainTip, b: ChainTip): boolean =>
  a.hash === b.hash && a.height === b.height && a.finalHeight === b.finalHeight

/**
 * Creates the loop that follows one network block by block, finds deposits, credits them at their
 * depth and handles reorganisations.
 * @param several the network's chain, whose client may use several endpoints
 * @param followed returns the networks that this process must follow now; the state of a network is
 *   discarded when another process follows it
 */
export function scanLoop(
  services: Services,
  several: Chain,
  followed: () => Promise<Set<string>>,
): Loop {
  const { network } = several
  let probed = false
  let scan: Scan | null = null
  /** Head at which a pass found nothing left to do, and the time of that pass. */
  let done: { tip: ChainTip; at: number } | null = null
  /** Time at which the head was read and nothing was left to do, and the pause that follows. */
  let rest = { since: 0, forMs: 0 }
  /** When this process last read the chain up to its head. */
  let knownAt: Date | null = null
  let missing: MissingBlock | null = null
  return {
    name: `scan ${network.code}`,
    everyMs: services.settings.pollMs,
    due: isStarted(network),
    async run() {
      // The network is not queried until a platform address exists on it, because a local chain
      // starts on first use.
      if (!(await followed()).has(network.code)) {
        done = null
        knownAt = null
        scan = null
        return false
      }
      if (!probed) {
        await several.client.probe()
        probed = true
      }
      const now = services.environment.now()
      if (now >= rest.since && now - rest.since < rest.forMs) return false
      // The head and the blocks come from a single endpoint, so that they belong to one view of the
      // chain.
      const chain = { ...several, client: await oneEndpoint(several.client) }
      const tip = await chain.client.tip()
      if (done !== null && Math.abs(now - done.at) < FULL_PASS_MS && isSame(done.tip, tip)) {
        knownAt = new Date(now)
        services.metrics.scannedAt.labels(network.code).set(now / 1000)
        rest = restFrom(services, several, now)
        return false
      }
      done = null
      scan ??= await takeScan(services, network)
      if (!scan) return false
      const taken = scan
      try {
        const { more, isKnown, isShort } = await scanOnce(services, chain, taken, tip, {
          askedAt: new Date(now),
          knownAt: knownAt ?? taken.knownAt,
        })
        services.work.ring()
        missing = isShort ? missingAt(taken.height + 1, missing, now) : null
        if (missing !== null) checkMissing(chain, tip, missing, now)
        if (isKnown) {
          knownAt = new Date(now)
          services.metrics.scannedAt.labels(network.code).set(services.environment.now() / 1000)
          done = { tip, at: now }
          rest = restFrom(services, several, now)
        }
        return more
      } catch (error) {
        if (!(error instanceof TakenOver)) throw error
        scan = null
        // If this process still follows the network, the operator has moved the scan; it continues
        // from the new position.
        if (!(await followed()).has(network.code)) throw error
        return true
      } finally {
        await release(services, network, taken)
      }
    },
  }
}

/** Returns the pause that follows a pass after which nothing was left to do. */
const restFrom = ({ settings: { pollMs } }: Services, { pace }: Chain, now: number) => ({
  since: now,
  // Half an interval is subtracted, because the loop runs every `pollMs`, possibly slightly early.
  forMs: (pace?.pauseMs(pollMs) ?? 0) - pollMs / 2,
})

interface TakenRow {
  height: string
  lease_token: string
  known_at: Date | null
  hash: string | null
  below: string
}

/** Takes a scan for this process; null if another process has it or it has not started. */
async function takeScan(services: Services, network: Network): Promise<Scan | null> {
  const row = await services.database.one<TakenRow>(
    `update network_scans set lease_until = $3::timestamptz + $2 * interval '1 millisecond',
      lease_token = gen_random_uuid()
     where network = $1 and height is not null and (lease_until is null or lease_until < $3)
     returning height::text, lease_token, known_at,
       pg_snapshot_xmin(pg_current_snapshot())::text below,
       (select hash from blocks b where b.network = $1 and b.height = network_scans.height) hash`,
    [network.code, SCAN_LEASE_MS, services.database.now()],
  )
  return row
    ? {
        token: row.lease_token,
        height: Number(row.height),
        hash: row.hash ?? undefined,
        knownAt: row.known_at,
        isLeased: true,
        next: null,
        watched: new WatchedAddresses(network, row.below),
      }
    : null
}

/**
 * Releases the lease. Between two passes any process may take a scan; the process that had it
 * before notices this by its token.
 */
async function release({ database }: Services, network: Network, scan: Scan): Promise<void> {
  if (!scan.isLeased) return
  await database.query(
    `update network_scans set lease_until = null where network = $1
      and lease_token = any($2::uuid[])`,
    [network.code, [scan.token, scan.next ?? scan.token]],
  )
  scan.isLeased = false
}

/** When the head was requested, and when the chain was last read up to its head. */
interface ReadTimes {
  askedAt: Date
  knownAt: Date | null
}

/** Runs one pass of a scan. */
async function scanOnce(
  services: Services,
  chain: Chain,
  scan: Scan,
  tip: ChainTip,
  times: ReadTimes,
): Promise<Pass> {
  const { network, client } = chain
  let mayBeReady = true
  let moved = false
  let isShort = false
  if (tip.height < scan.height || (tip.height === scan.height && scan.hash !== tip.hash))
    await walkBack(services, chain, scan)
  const ahead = new BlocksAhead(client)
  const until = services.environment.now() + SCAN_LEASE_MS / 2
  for (
    let turn = 0;
    turn < TURNS_PER_RUN && scan.height < tip.height && services.environment.now() < until;
    turn++
  ) {
    const blocks = await readNext(services, chain, scan, tip, ahead)
    if (blocks === null) continue
    const newest = blocks.at(-1)
    if (!newest) {
      // The endpoint does not return a block below its head; retrying immediately could loop
      // without end.
      isShort = true
      break
    }
    mayBeReady = await writeBlocks(services, chain, scan, { blocks, newest, tip, ...times })
    moved = true
    await noteClaims(services.database, network, blocks)
    services.metrics.scanned.labels(network.code).set(scan.height)
    const passed = blocks.find(({ height }) => height % BLOCKS_FORGOTTEN === 0)
    if (passed)
      await forgetBlocks(
        services.database,
        network,
        scan,
        forgottenBelow(passed.height, finalAt(network, tip, scan.height)),
      )
  }
  const final = finalAt(network, tip, scan.height)
  if (!moved && (await finalMoved(services.database, network, scan, tip, final)))
    await wake(services.database, network.code)
  if (mayBeReady) await creditReady(services, chain, scan, final)
  return { more: scan.height < tip.height && !isShort, isKnown: scan.height >= tip.height, isShort }
}

/**
 * Reads the next blocks, and the platform addresses that they may pay. Returns null if the chain
 * was reorganised and the scan has moved back; an empty list if the endpoint returns no block.
 * @throws RpcUnavailable if the endpoint's blocks do not follow each other
 */
async function readNext(
  services: Services,
  chain: Chain,
  scan: Scan,
  tip: ChainTip,
  ahead: BlocksAhead,
): Promise<ChainBlock[] | null> {
  const learn = () => scan.watched.learn(services.database, scan.token)
  // The head's block existed before this query, and so did every address that it pays. The block
  // and the addresses are therefore read concurrently.
  const isNext = scan.height + 1 === tip.height
  const [read] = await Promise.all([ahead.take(scan.height + 1, tip.height), isNext && learn()])
  const blocks = following(scan.hash, read)
  if (blocks === null) {
    ahead.drop()
    const from = scan.height
    await walkBack(services, chain, scan)
    if (scan.height < from) return null
    throw new RpcUnavailable(
      `${chain.network.code}: the parent of the block at ${from + 1} is not the block at ${from} that the same endpoint returns`,
    )
  }
  const newest = blocks.at(-1)
  if (newest && (!isNext || newest.hash !== tip.hash)) await learn()
  return blocks
}

/**
 * Writes the position of the scan with the deposits and coins of the blocks up to it.
 * @returns whether deposits may have reached their depth
 * @throws TakenOver
 */
async function writeBlocks(
  services: Services,
  { network, client, agreement }: Chain,
  scan: Scan,
  {
    blocks,
    newest,
    tip,
    askedAt,
    knownAt,
  }: ReadTimes & {
    blocks: readonly ChainBlock[]
    newest: ChainBlock
    tip: ChainTip
  },
): Promise<boolean> {
  const among = (addresses: readonly string[]) => scan.watched.among(addresses)
  const [deposits, coins, aside] = await Promise.all([
    findDeposits(services, network, blocks, among, client),
    placedCoins(services.database, network, blocks),
    findAside(services.database, network, blocks, among),
  ])
  const next = (scan.next = services.environment.uuid())
  // The flag is set before the write, because the result of the write may never become known.
  scan.isLeased ||= newest.height < tip.height
  const write = (tx: Queryable) =>
    move(tx, network, scan, {
      next,
      blocks,
      tip: tip.height,
      final: finalAt(network, tip, newest.height),
      askedAt,
      endpoint: agreement?.nameOf(client) ?? null,
    })
  const hasDeposits = deposits.some(({ length }) => length > 0)
  // Most blocks contain nothing that concerns the platform; one statement is then sufficient.
  const isEmpty =
    !hasDeposits &&
    coins.size === 0 &&
    !blocks.some(hasTokens) &&
    aside.every(({ length }) => length === 0)
  const written = isEmpty
    ? await write(services.database)
    : await services.database.transaction(async (tx) => {
        const written = await write(tx)
        for (const [at, block] of blocks.entries()) {
          for (const match of deposits[at] ?? [])
            await recordDeposit(services, tx, {
              network,
              block,
              match,
              knownAt: knownAt ?? askedAt,
            })
          await recordUtxoTokens(tx, network, block)
          await recordAside(services, tx, network, block, aside[at] ?? [])
        }
        await placeCoins(tx, network, coins)
        return written
      })
  services.environment.checkpoint('scan.block')
  Object.assign(scan, {
    token: next,
    next: null,
    height: newest.height,
    hash: newest.hash,
    isLeased: newest.height < tip.height,
  })
  scan.watched.moved(written.below)
  return written.waiting || hasDeposits
}

/**
 * Writes the final height of a scan whose position did not change. If the head is the block at this
 * position, a contradiction ends: the endpoint returns the known blocks.
 * @returns whether the final height changed
 * @throws TakenOver
 */
async function finalMoved(
  database: Queryable,
  network: Network,
  { token, height, hash }: Scan,
  tip: ChainTip,
  final: number,
): Promise<boolean> {
  const isAtHead = tip.height === height && tip.hash === hash
  const row = await database.one<{ isMoved: boolean }>(
    `with ours as (select final_height from network_scans where network = $1 and lease_token = $2),
       moved as (
       update network_scans set tip_height = $3, final_height = $4,
         ${contradictionEnded('not $5')}
       where network = $1 and lease_token = $2
         and (final_height <> $4 or ($5 and contradiction is not null)) returning 1
     ) select exists (select 1 from moved) "isMoved" from ours`,
    [network.code, token, tip.height, final, isAtHead],
  )
  if (!row) throw new TakenOver(network)
  return row.isMoved
}

async function hashAt(
  services: Services,
  network: Network,
  height: number,
): Promise<string | undefined> {
  const existing = await services.database.one<{ hash: string }>(
    'select hash from blocks where network = $1 and height = $2',
    [network.code, height],
  )
  return existing?.hash
}

/**
 * Result of writing the position. `waiting`: earlier deposits wait for their depth. `below`: see
 * {@link WatchedAddresses}.
 */
interface Moved {
  waiting: boolean
  below: string
}

/**
 * A position to write: the scan's next token, the blocks up to the position, the heights of the
 * head and of the newest final block, when the head was requested, and the endpoint that returned the
 * blocks, if several must agree.
 */
interface Position {
  next: string
  blocks: readonly ChainBlock[]
  tip: number
  final: number
  askedAt: Date
  endpoint: string | null
}

/**
 * Writes the position and the blocks up to it, and makes the transactions that wait for the chain
 * due (like `wake`), in one statement. At the head, this also ends the lease.
 * @throws TakenOver
 */
async function move(
  tx: Queryable,
  network: Network,
  scan: Scan,
  { next, blocks, tip, final, askedAt, endpoint }: Position,
): Promise<Moved> {
  const row = await tx.one<Moved>(
    `with moved as (
       update network_scans set height = $3, tip_height = $4, final_height = $5, updated_at = $6,
         compared_height = case when $12::text is not null then compared_height end,
         known_at = case when $3::bigint >= $4::bigint then $7 else known_at end, lease_token = $11,
         ${contradictionEnded()},
         lease_until = case
           when $3::bigint < $4::bigint then $6::timestamptz + interval '${SCAN_LEASE_MS} milliseconds' end
       where network = $1 and lease_token = $2 returning 1
     ), kept as (
       insert into blocks (network, height, hash, parent, endpoint)
         select $1, b.*, $12 from unnest($8::bigint[], $9::text[], $10::text[]) b
           where exists (select 1 from moved)
       on conflict (network, height) do update set hash = excluded.hash, parent = excluded.parent,
         endpoint = excluded.endpoint
     ), woken as (
       update transactions set next_run_at = $6 where network = $1 and ${AWAITS_CHAIN}
         and exists (select 1 from moved)
     ) select exists (select 1 from transactions t where ${WAITS_FOR_DEPTH}) waiting,
       pg_snapshot_xmin(pg_current_snapshot())::text below from moved`,
    [
      network.code,
      scan.token,
      blocks.at(-1)?.height,
      tip,
      final,
      tx.now(),
      askedAt,
      blocks.map(({ height }) => height),
      blocks.map(({ hash }) => hash),
      blocks.map(({ parent }) => parent),
      next,
      endpoint,
    ],
  )
  if (!row) throw new TakenOver(network)
  return row
}

/**
 * Returns to the last block that is still part of the chain and reverts the contents of the blocks
 * above it.
 */
async function walkBack(services: Services, chain: Chain, scan: Scan): Promise<void> {
  const { network, client } = chain
  const from = scan.height
  let height = from
  let existing: string | undefined
  /** The lowest stored block of which the endpoint returns another one. */
  let lowest: Differing | null = null
  for (;;) {
    existing = await hashAt(services, network, height)
    if (existing === undefined) break
    const block = await client.block(height)
    if (block && block.hash === existing) break
    if (block) lowest = { height, known: existing, other: block.hash }
    height--
  }
  // Heights that a lagging endpoint does not have yet are not a reorganisation.
  if (lowest === null) {
    if (existing !== undefined) return
    throw new RpcUnavailable(
      `${network.code}: the endpoint returns none of the blocks that are kept`,
    )
  }
  await assertMayTakeBack(services, chain, lowest)
  const next = (scan.next = services.environment.uuid())
  await services.database.transaction(async (tx) => {
    // The position is moved first, because a process that was suspended must not revert blocks that
    // another process has read since.
    const moved = await tx.query(
      `update network_scans set height = $3, lease_token = $4, ${contradictionEnded()},
         compared_height = case when compared_height > $3 then $3 else compared_height end
       where network = $1 and lease_token = $2 returning 1`,
      [network.code, scan.token, height, next],
    )
    if (moved.length !== 1) throw new TakenOver(network)
    // Sweeps and payments come after the deposits that they spend, so they are taken back first.
    await undoAbove(services, tx, network.code, height)
    const gone = await tx.query<TransactionRow>(
      `select t.* from transactions t join deposits d on d.workspace_id = t.workspace_id
        and d.transaction_id = t.id
       where d.network = $1 and d.block_height > $2 for update of t`,
      [network.code, height],
    )
    for (const row of gone) await revert(services, tx, row)
    await tx.query(
      `update utxos set block_height = null, spendable = (origin = 'change' and not contested)
        where network = $1 and block_height > $2`,
      [network.code, height],
    )
    await takeBackAside(tx, network, height)
    await tx.query('delete from blocks where network = $1 and height > $2', [network.code, height])
    await wake(tx, network.code)
  })
  Object.assign(scan, { token: next, next: null, height, hash: existing })
  services.log.warn({ network: network.code, from, to: height }, 'the chain was reorganised')
  if (existing === undefined)
    services.log.error(
      { network: network.code, to: height },
      'a reorganisation goes back further than the blocks that are kept; read earlier blocks again with "custody rescan"',
    )
}
