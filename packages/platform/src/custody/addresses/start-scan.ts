import type { ChainBlock, Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { ApiError } from '../../core/errors.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Agreement } from '../../core/engine/endpoints/agreement.ts'
import { finalAt } from '../../core/engine/outcomes/final.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'

interface Services {
  database: Database
  networks: Networks
  log: Logger
}

// A network is not queried, and causes no cost, until a platform address exists on it. Before the
// first address is assigned, the start height of the scan is committed, so that every payment to the
// address is in a later block.

/**
 * Commits the start height of a network's scan, on a separate connection, once. Must be called
 * before an address is stored, and the first time outside a database transaction, because it
 * queries the chain.
 * @throws ApiError `NETWORK_UNAVAILABLE` if the chain cannot be queried, because an address would
 *   be assigned that no scan covers
 */
export async function commitScanStart(services: Services, network: Network): Promise<void> {
  if ((await startedNetworks(services)).has(network.code)) return
  try {
    const { start, tip } = await startOf(services.networks.get(network.code))
    await services.database.transaction(async (tx) => {
      const mine = await tx.query(
        `insert into network_scans as s (network, height, tip_height, final_height)
          values ($1, $2, $3, $2)
         on conflict (network) do update set
           height = excluded.height, tip_height = excluded.tip_height,
             final_height = excluded.final_height
         where s.height is null returning 1`,
        [network.code, start.height, tip],
      )
      // If another process committed a start height first, that height applies: it precedes every
      // address that either process assigns.
      if (mine.length === 1) {
        await tx.query(
          `insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4)
            on conflict do nothing`,
          [network.code, start.height, start.hash, start.parent],
        )
      }
    })
  } catch (error) {
    services.log.warn(
      { network: network.code, err: reasonOf(error) },
      'the newest block of a network cannot be queried; no address is created',
    )
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `network ${network.code} cannot be reached; no address was created`,
    )
  }
}

interface Start {
  start: ChainBlock
  tip: number
}

/**
 * Returns a final block and the height of the head. The block must be final, because the scanner
 * could not continue from a block that was reorganised.
 */
async function startOf({ network, client, agreement }: Chain): Promise<Start> {
  await client.probe()
  if (agreement) return agreedStart(network, agreement)
  const tip = await client.tip()
  const final = Math.max(0, tip.finalHeight ?? tip.height - (network.confirmations ?? 1) + 1)
  // If the chain defines finality by depth, the head must be readable too, because a head that the
  // endpoint reports but cannot return does not count.
  const heights = tip.finalHeight === null && final !== tip.height ? [final, tip.height] : [final]
  const shown = await Promise.all(heights.map((height) => client.block(height)))
  const missing = heights.find((_, at) => !shown[at])
  const [start] = shown
  if (missing !== undefined || !start)
    throw new Error(`the endpoint does not have block ${missing ?? final}`)
  return { start, tip: tip.height }
}

/**
 * Returns the highest block that a quorum of endpoints has and reports as final. The remaining
 * endpoints neither delay nor advance the start height.
 */
async function agreedStart(network: Network, { quorum, votes }: Agreement): Promise<Start> {
  const finals: number[] = []
  for await (const { answer: tip } of votes((each) => each.tip()))
    finals.push(Math.max(0, finalAt(network, tip, tip.height)))
  const height = finals.sort((a, b) => b - a)[quorum - 1] as number
  const shown = new Map<string, number>()
  for await (const { answer: block } of votes((each) => each.block(height))) {
    if (block === null) continue
    const count = (shown.get(block.hash) ?? 0) + 1
    if (count >= quorum) return { start: block, tip: height }
    shown.set(block.hash, count)
  }
  throw new Error(`fewer than ${quorum} endpoints return the same block ${height}`)
}

/** Returns the networks that are scanned. */
export async function startedNetworks(services: Pick<Services, 'database'>): Promise<Set<string>> {
  const rows = await services.database.query<{ network: string }>(
    'select network from network_scans where height is not null',
  )
  return new Set(rows.map(({ network }) => network))
}

/** Returns an SQL expression that tells whether a network is scanned. */
export const isStarted = ({ code }: Network): string =>
  `exists (select 1 from network_scans where network = '${code}' and height is not null)`
