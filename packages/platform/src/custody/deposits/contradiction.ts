import { RpcUnavailable, type Network } from '@custody/chains'
import type { Logger } from 'pino'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Chain } from '../../core/engine/chain.ts'
import { contradictionText, type Contradiction } from '../../core/engine/endpoints/belief.ts'

/**
 * A final block that an endpoint contradicts: it returns another block at the same height. Other
 * endpoints decide which one is right. If none does, the network halts: nothing is credited, settled or
 * paid on it until an endpoint returns the known block again, another one decides, or the operator
 * accepts the other block (`custody chain accept-reorg`).
 */
interface Services {
  database: Database
  log: Logger
}

/** Hashes of a block: as it was read, and as the endpoint returns it now. */
export type Differing = Pick<Contradiction, 'height' | 'known' | 'other'>

/**
 * Returns SQL assignments that end a contradiction.
 * @param unless SQL condition under which it stays
 */
export const contradictionEnded = (unless = 'false'): string =>
  ['contradiction', 'accepted_block']
    .map((column) => `${column} = case when ${unless} then ${column} end`)
    .join(', ')

/** Number of endpoints that must return another block, without a larger quorum; they must also be most. */
const DECIDING = 2

/**
 * Whether something rests on blocks from this height on: they were final, or a deposit or a transaction
 * was booked in one of them. An endpoint may change which blocks it reports as final.
 */
async function isBooked(
  { database }: Services,
  { code }: Network,
  height: number,
): Promise<boolean> {
  const row = await database.one<{ is: boolean }>(
    `select exists (select 1 from network_scans where network = $1 and final_height >= $2)
       or exists (select 1 from chain_transactions where network = $1 and block_height >= $2
         and state = 'CONFIRMED')
       or exists (select 1 from deposits d join transactions t on t.workspace_id = d.workspace_id
         and t.id = d.transaction_id
         where d.network = $1 and d.block_height >= $2 and t.state <> 'CONFIRMING') "is"`,
    [code, height],
  )
  return row?.is === true
}

/**
 * Checks that blocks from a height on may be taken back.
 * @throws RpcUnavailable if they may not: the other endpoints return the known block, and the one that
 *   does not is set aside for a while; or no endpoint decides, and the network halts
 */
export async function assertMayTakeBack(
  services: Services,
  chain: Chain,
  differing: Differing,
): Promise<void> {
  const { network, client, agreement, voters } = chain
  const { height, known, other } = differing
  if (!(await isBooked(services, network, height))) return
  const { others, same } = await votesOn(chain, differing)
  if (others > same && others >= Math.max(DECIDING, agreement?.quorum ?? 0)) return
  if (voters && same > 0) {
    const reason = `it returns another block at ${height} than the final one, and ${same} other endpoints return that one`
    voters.distrust(client, reason)
    throw new RpcUnavailable(`${network.code}: an endpoint is not used: ${reason}`)
  }
  if (await isAccepted(services, network, differing)) return
  const contradiction = await note(services, network, { height, known, other })
  throw new RpcUnavailable(`${network.code}: ${contradictionText(network.code, contradiction)}`)
}

/** Counts the endpoints that return another block than the known one, and those that return this one. */
async function votesOn(
  { voters }: Chain,
  { height, known }: Differing,
): Promise<{ others: number; same: number }> {
  if (!voters) return { others: 1, same: 0 }
  const count = { others: 0, same: 0 }
  try {
    for await (const { answer } of voters.votes((each) => each.block(height))) {
      if (answer !== null) count[answer.hash === known ? 'same' : 'others']++
    }
  } catch (error) {
    // Fewer endpoints respond than must agree: those that do are counted.
    if (!(error instanceof RpcUnavailable)) throw error
  }
  return count
}

async function isAccepted(
  { database }: Services,
  { code }: Network,
  { height, other }: Differing,
): Promise<boolean> {
  const row = await database.one(
    `select 1 from network_scans where network = $1 and (accepted_block->>'height')::bigint = $2
       and accepted_block->>'hash' = $3`,
    [code, height, other],
  )
  return row !== undefined
}

/** Returns the contradictions of all networks, by network. */
export async function contradictionsOf(database: Queryable): Promise<Map<string, Contradiction>> {
  const rows = await database.query<{ network: string; contradiction: Contradiction }>(
    'select network, contradiction from network_scans where contradiction is not null order by network',
  )
  return new Map(rows.map(({ network, contradiction }) => [network, contradiction]))
}

/**
 * Checks that no endpoint contradicts a final block of a network: what the books lack or have too much
 * may be on the other chain. Until the transaction ends, no contradiction is noted.
 * @throws Contradicted
 */
export async function assertUncontradicted(tx: Queryable, network: string): Promise<void> {
  const row = await tx.one<{ contradiction: Contradiction | null }>(
    'select contradiction from network_scans where network = $1 for update',
    [network],
  )
  if (row?.contradiction) throw new Contradicted(contradictionText(network, row.contradiction))
}

/** Thrown where the books of a network may not change; the message is for the operator. */
export class Contradicted extends Error {
  override readonly name = 'Contradicted'
}

/**
 * Accepts the block that an endpoint returns instead of a final one: the next pass of the scan takes
 * the known blocks from this height on back.
 * @returns whether an endpoint contradicts a final block of the network in this way
 */
export async function acceptBlock(
  tx: Queryable,
  network: string,
  { height, other }: Pick<Contradiction, 'height' | 'other'>,
): Promise<boolean> {
  const accepted = await tx.query(
    `update network_scans set accepted_block = jsonb_build_object('height', $2::bigint, 'hash', $3::text)
     where network = $1 and (contradiction->>'height')::bigint = $2 and contradiction->>'other' = $3
     returning 1`,
    [network, height, other],
  )
  return accepted.length > 0
}

/** Stores a contradiction, and logs it if it is new. */
async function note(
  { database, log }: Services,
  { code }: Network,
  differing: Differing,
): Promise<Contradiction> {
  const noted = { ...differing, since: database.now().toISOString() }
  const { height, known, other } = differing
  const written = await database.query(
    `update network_scans set contradiction = $2 where network = $1
       and (contradiction->>'other' is distinct from $3 or contradiction->>'known' is distinct from $4)
     returning 1`,
    [code, JSON.stringify(noted), other, known],
  )
  if (written.length > 0)
    log.error(
      { network: code, height, known, other },
      'an endpoint contradicts a final block; the network credits and pays nothing',
    )
  return noted
}
