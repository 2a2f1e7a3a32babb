import {
  ChainError,
  RpcUnavailable,
  type ChainBlock,
  type ChainClient,
  type Network,
  type Registry,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Prices } from '../prices/prices.ts'
import { BlocksAhead, following } from './blocks-ahead.ts'
import { findAside, recordAside } from './coins-aside.ts'
import { findDeposits, recordDeposit } from './record.ts'
import { recordUtxoTokens } from './utxo-tokens.ts'
import { placeCoins, placedCoins } from './coin-heights.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  work: Notifier
  invoices: Invoices
  prices: Prices
}

/**
 * Milliseconds without a write after which a process is considered dead, so that another may
 * continue its rescan.
 */
const STALE_MS = 120_000
/**
 * Number of consecutive failures after which a rescan stops; pause per failure and maximum pause in
 * milliseconds.
 */
const FAILURES_MAX = 12
const PAUSE_MS = 1000
const PAUSE_MS_MAX = 5000

/**
 * Progress of a rescan. `next`: the next height to read; if it is above `to`, all heights are read.
 * `isRunning`: a process is working on it.
 */
export interface Rescan {
  network: string
  from: number
  to: number
  next: number
  found: number
  error: string | null
  isRunning: boolean
}

/** Thrown when another process has taken this rescan, or it was stopped. */
export class RescanTaken extends Error {}

interface Row {
  from_height: string
  to_height: string
  next_height: string
  found: number
  last_error: string | null
  token: string | null
  updated_at: Date
}

export async function readRescan(
  { database }: Pick<Services, 'database'>,
  network: string,
): Promise<Rescan | null> {
  const row = await database.one<Row>(
    `select from_height::text, to_height::text, next_height::text, found, last_error, token,
      updated_at from rescans where network = $1`,
    [network],
  )
  return row
    ? {
        network,
        from: Number(row.from_height),
        to: Number(row.to_height),
        next: Number(row.next_height),
        found: row.found,
        error: row.last_error,
        // A rescan whose last height was read is finished, even before its process has stored that
        // it ended.
        isRunning:
          row.token !== null &&
          Number(row.next_height) <= Number(row.to_height) &&
          database.now().getTime() - row.updated_at.getTime() < STALE_MS,
      }
    : null
}

/**
 * Starts a rescan of a range of heights in this process, or continues an interrupted rescan of the
 * same range.
 * @returns its token; null if another process is working on the network's rescan
 */
export async function takeRescan(
  { database, environment }: Pick<Services, 'environment' | 'database'>,
  network: string,
  from: number,
  to: number,
): Promise<string | null> {
  const token = environment.uuid()
  const isUnfinished =
    'r.from_height = excluded.from_height and r.to_height = excluded.to_height and r.next_height <= r.to_height'
  const stored = (column: string, fresh: string) =>
    `${column} = case when ${isUnfinished} then r.${column} else ${fresh} end`
  const taken = await database.query(
    `insert into rescans as r (network, from_height, to_height, next_height, token, started_at,
       updated_at)
       values ($1, $2, $3, $2, $4, $5, $5)
     on conflict (network) do update set from_height = excluded.from_height,
       to_height = excluded.to_height, last_error = null,
       ${stored('next_height', 'excluded.next_height')}, ${stored('last_hash', 'null')},
         ${stored('found', '0')},
       ${stored('started_at', 'excluded.started_at')}, token = excluded.token,
         updated_at = excluded.updated_at
     where r.token is null or r.next_height > r.to_height
       or r.updated_at < $5::timestamptz - $6 * interval '1 millisecond' returning 1`,
    [network, from, to, token, database.now(), STALE_MS],
  )
  return taken.length === 1 ? token : null
}

/**
 * Stops a rescan; it can be continued later.
 * @param token token of the rescan; null: stop it whichever process is working on it
 */
export async function stopRescan(
  { database }: Pick<Services, 'database'>,
  network: string,
  token: string | null,
  error: string | null,
): Promise<void> {
  await database.query(
    `update rescans set token = null, last_error = $3, updated_at = $4 where network = $1
       and token is not null
       and ($2::uuid is null or token = $2)`,
    [network, token, error, database.now()],
  )
}

/**
 * Reads the remaining heights of a rescan and records the deposits that the scanner missed, in the
 * same way as the scanner: they are credited at their depth, after screening. Each part is
 * committed together with its deposits, so the rescan can stop at any time. Deposits that are
 * already recorded stay unchanged.
 * @throws RescanTaken; ChainError after several consecutive failures, with the endpoint's reason
 */
export async function runRescan(services: Services, chain: Chain, token: string): Promise<void> {
  const { network, client } = chain
  const ahead = new BlocksAhead(client)
  for (let failures = 0; ;) {
    try {
      if (!(await readPart(services, chain, ahead, token))) return
      failures = 0
    } catch (error) {
      // Errors that are not the endpoint's end the rescan, such as an unreachable database or a
      // shutdown.
      if (!(error instanceof ChainError)) throw error
      ahead.drop()
      await services.database.query(
        'update rescans set last_error = $3, updated_at = $4 where network = $1 and token = $2',
        [network.code, token, reasonOf(error), services.database.now()],
      )
      if (++failures >= FAILURES_MAX) throw error
      await services.environment.sleep(Math.min(PAUSE_MS_MAX, PAUSE_MS * failures))
    }
  }
}

/**
 * Reads and writes the next part of a rescan.
 * @returns whether heights are left
 */
async function readPart(
  services: Services,
  { network, client }: Chain,
  ahead: BlocksAhead,
  token: string,
): Promise<boolean> {
  const { database } = services
  const rescan = await database.one<{ next: string; to: string; last_hash: string | null }>(
    `select next_height::text next, to_height::text "to", last_hash from rescans where network = $1
      and token = $2`,
    [network.code, token],
  )
  if (!rescan)
    throw new RescanTaken(
      `the rescan of ${network.code} was stopped, or another process took it over`,
    )
  const [next, to] = [Number(rescan.next), Number(rescan.to)]
  if (next > to) return false
  const taken = await ahead.take(next, to)
  const blocks = following(rescan.last_hash ?? undefined, taken)
  if (blocks === null) {
    // The previous block was reorganised, or two nodes behind one endpoint disagree, so the
    // previous block is read again.
    await database.query(
      `update rescans set next_height = greatest(from_height, next_height - 1), last_hash = null,
        updated_at = $3
       where network = $1 and token = $2`,
      [network.code, token, database.now()],
    )
    throw new RpcUnavailable(
      `${network.code}: the parent of the block at ${next} is not the block that was returned at ${next - 1}`,
    )
  }
  const newest = blocks.at(-1)
  if (!newest)
    throw new RpcUnavailable(`${network.code}: the endpoint does not have the block at ${next}`)
  const record = await missedIn(services, network, blocks, client)
  await database.transaction(async (tx) => {
    const match = await record(tx)
    const moved = await tx.query(
      `update rescans set next_height = $3, last_hash = $4, found = found + $5, last_error = null,
        updated_at = $6
       where network = $1 and token = $2 and next_height = $7 returning 1`,
      [network.code, token, newest.height + 1, newest.hash, match, tx.now(), next],
    )
    if (moved.length !== 1)
      throw new RescanTaken(`another process took over the rescan of ${network.code}`)
  })
  services.environment.checkpoint('rescan.part')
  services.work.ring()
  return newest.height < to
}

/**
 * Finds what the scanner missed in blocks that it has read.
 * @param client the client that returned the blocks
 * @returns records it, in a transaction, and returns the number of deposits that were not recorded
 *   yet; throws RpcUnavailable if the scanner has not read these blocks
 */
export async function missedIn(
  services: Omit<Services, 'work'>,
  network: Network,
  blocks: readonly ChainBlock[],
  client: ChainClient,
): Promise<(tx: Queryable) => Promise<number>> {
  const { database } = services
  const all = (addresses: readonly string[]) => [...addresses]
  const [deposits, coins, aside] = await Promise.all([
    findDeposits(services, network, blocks, all, client),
    placedCoins(database, network, blocks),
    findAside(database, network, blocks, all),
  ])
  return async (tx) => {
    await checkScanned(tx, network, blocks)
    let count = 0
    for (const [at, block] of blocks.entries()) {
      for (const match of deposits[at] ?? [])
        if (await recordDeposit(services, tx, { network, block, match, knownAt: tx.now() })) count++
      await recordUtxoTokens(tx, network, block)
      await recordAside(services, tx, network, block, aside[at] ?? [])
    }
    await placeCoins(tx, network, coins)
    return count
  }
}

/**
 * Locks the position of the network's scanner and checks that it has read exactly these blocks or
 * that they are final. A later reorganisation is then handled by the scanner, which finds deposits
 * by the heights of their blocks.
 * @throws RpcUnavailable if the scanner has not read these blocks, or an endpoint contradicts a final one
 */
async function checkScanned(
  tx: Queryable,
  { code }: Network,
  blocks: readonly ChainBlock[],
): Promise<void> {
  const scan = await tx.one<{ height: string; final: string | null; isContradicted: boolean }>(
    `select height::text, final_height::text final, contradiction is not null "isContradicted"
     from network_scans where network = $1 for share`,
    [code],
  )
  if (scan?.isContradicted)
    throw new RpcUnavailable(`${code}: an endpoint contradicts a final block`)
  const stored = new Map(
    (
      await tx.query<{ height: string; hash: string }>(
        'select height::text, hash from blocks where network = $1 and height = any($2::bigint[])',
        [code, blocks.map(({ height }) => height)],
      )
    ).map(({ height, hash }) => [Number(height), hash]),
  )
  for (const { height, hash } of blocks) {
    const existing = stored.get(height)
    if (
      height > Number(scan?.height ?? -1) ||
      (existing === undefined && height > Number(scan?.final ?? -1))
    ) {
      throw new RpcUnavailable(
        `${code}: the scan has not read the block at ${height}, which may have been reorganised`,
      )
    }
    if (existing !== undefined && existing !== hash) {
      throw new RpcUnavailable(
        `${code}: the endpoint returns another block at ${height} than the scan has read`,
      )
    }
  }
}
