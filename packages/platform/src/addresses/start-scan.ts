import type { ChainBlock, Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { ApiError } from '../errors.ts'
import type { Chain } from '../engine/chain.ts'
import type { Agreement } from '../engine/endpoint-group.ts'
import { finalAt } from '../engine/final.ts'
import type { Services } from '../engine/services.ts'

/**
 * A network is not touched, and costs nothing, until an address of ours exists on it. Before the
 * first one is handed out, the height to scan from is committed: whatever is paid to the address
 * stands in a later block.
 */

/**
 * Commits where the scan of a network starts, on a connection of its own, once. Called before an
 * address is stored, and outside a database transaction the first time: it asks the chain.
 * @throws ApiError `NETWORK_UNAVAILABLE` where the chain cannot be asked: an address would be
 *   handed out that nobody watches
 */
export async function commitScanStart(services: Services, network: Network): Promise<void> {
  if ((await startedNetworks(services)).has(network.code)) return
  try {
    const { start, tip } = await startOf(services.networks.get(network.code))
    await services.database.transaction(async (tx) => {
      const mine = await tx.query(
        `insert into network_scans as s (network, height, tip_height, final_height) values ($1, $2, $3, $2)
         on conflict (network) do update set
           height = excluded.height, tip_height = excluded.tip_height, final_height = excluded.final_height
         where s.height is null returning 1`,
        [network.code, start.height, tip],
      )
      // Another process was first: its height is no later than ours for the addresses that it hands
      // out, and ours is later still.
      if (mine.length === 1) {
        await tx.query(
          'insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4) on conflict do nothing',
          [network.code, start.height, start.hash, start.parent],
        )
      }
    })
  } catch (error) {
    services.log.warn(
      { network: network.code, err: reasonOf(error) },
      'the head of a network cannot be queried; no address is created',
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

/** A final block, and the head: one that is taken back would leave the scanner without ground. */
async function startOf({ network, client, agreement }: Chain): Promise<Start> {
  await client.probe()
  if (agreement) return agreedStart(network, agreement)
  const tip = await client.tip()
  const final = Math.max(0, tip.finalHeight ?? tip.height - (network.confirmations ?? 1) + 1)
  // Where depth decides, blocks that the endpoint only tells of bury nothing.
  const heights = tip.finalHeight === null && final !== tip.height ? [final, tip.height] : [final]
  const shown = await Promise.all(heights.map((height) => client.block(height)))
  const missing = heights.find((_, at) => !shown[at])
  const [start] = shown
  if (missing !== undefined || !start)
    throw new Error(`the endpoint does not have block ${missing ?? final}`)
  return { start, tip: tip.height }
}

/**
 * The highest block that is final to so many endpoints and that so many show: others neither put it
 * off nor bring it forward.
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

/** Networks that are scanned. */
export async function startedNetworks(services: Services): Promise<Set<string>> {
  const rows = await services.database.query<{ network: string }>(
    'select network from network_scans where height is not null',
  )
  return new Set(rows.map(({ network }) => network))
}

/** Whether one is, as an expression of SQL. */
export const isStarted = ({ code }: Network): string =>
  `exists (select 1 from network_scans where network = '${code}' and height is not null)`
