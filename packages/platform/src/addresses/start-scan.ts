import type { Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'

/**
 * A network is not touched, and costs nothing, until an address of ours exists on it. Before the first one is
 * handed out, the height to scan from is committed: whatever is paid to the address stands in a later block.
 */

/**
 * Commits where the scan of a network starts, on a connection of its own, once. Called before an address is stored,
 * and outside a database transaction the first time: it asks the chain.
 * @throws ApiError `NETWORK_UNAVAILABLE` where the chain cannot be asked: an address would be handed out that nobody watches
 */
export async function commitScanStart(services: Services, network: Network): Promise<void> {
  if ((await startedNetworks(services)).has(network.code)) return
  const client = services.networks.client(network.code)
  try {
    await client.probe()
    const tip = await client.tip()
    // A final block: one that is taken back would leave the scanner without ground.
    const final = Math.max(0, tip.finalHeight ?? tip.height - (network.confirmations ?? 1) + 1)
    // Where depth decides, blocks that the endpoint only tells of bury nothing.
    const heights = tip.finalHeight === null && final !== tip.height ? [final, tip.height] : [final]
    const shown = await Promise.all(heights.map((height) => client.block(height)))
    const missing = heights.find((_, at) => !shown[at])
    const [start] = shown
    if (missing !== undefined || !start) throw new Error(`the endpoint does not have block ${missing ?? final}`)
    await services.database.transaction(async (tx) => {
      const mine = await tx.query(
        `insert into network_scans as s (network, height, tip_height, final_height) values ($1, $2, $3, $2)
         on conflict (network) do update set
           height = excluded.height, tip_height = excluded.tip_height, final_height = excluded.final_height
         where s.height is null returning 1`,
        [network.code, start.height, tip.height])
      // Another process was first: its height is no later than ours for the addresses that it hands out, and ours is later still.
      if (mine.length === 1) {
        await tx.query('insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4) on conflict do nothing', [
          network.code, start.height, start.hash, start.parent,
        ])
      }
    })
  } catch (error) {
    services.log.warn(
      { network: network.code, err: reasonOf(error) }, 'a network cannot be asked where it stands; no address is handed out'
    )
    throw new ApiError('NETWORK_UNAVAILABLE', `network ${network.code} cannot be reached; no address was made`)
  }
}

/** Networks that are scanned. */
export async function startedNetworks(services: Services): Promise<Set<string>> {
  const rows = await services.database.query<{ network: string }>('select network from network_scans where height is not null')
  return new Set(rows.map(({ network }) => network))
}

/** Whether one is, as an expression of SQL. */
export const isStarted = ({ code }: Network): string =>
  `exists (select 1 from network_scans where network = '${code}' and height is not null)`
