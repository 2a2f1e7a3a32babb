import {
  RpcUnavailable,
  type ChainBlock,
  type ChainClient,
  type Network,
  type Registry,
} from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { Agreement } from '../../core/engine/endpoints/agreement.ts'
import type { Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { finalAt } from '../../core/engine/outcomes/final.ts'
import type { Environment } from '../../core/environment.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Prices } from '../prices/prices.ts'
import type { Logger } from 'pino'
import { nameInBlock, recordedName, type RecordedPayment } from './identity.ts'
import { findPayments, type MatchedTransfer } from './record.ts'
import { missedIn } from './rescan.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  metrics: Metrics
  log: Logger
  work: Notifier
  invoices: Invoices
  prices: Prices
}

const EVERY_MS = 10_000
/** Maximum number of blocks that are compared, and requested from one endpoint, at once. */
const TOGETHER = 8
const DAY_MS = 86_400_000
/** Maximum number of blocks to catch up with if the network has no usual time between two blocks. */
const BEHIND_MAX = 100_000

/**
 * A final block that the scanner has read. `hash`: null if it is no longer stored; `endpoint`: which
 * endpoint returned it; null if unknown; `names`: the recorded deposits.
 */
interface ScannedBlock {
  height: number
  hash: string | null
  endpoint: string | null
  names: ReadonlySet<string>
}

/**
 * What one endpoint returns for a block. `block`: null if it does not return it; `payments`: the
 * deposits by name, with their transaction; `claims`: what contracts paid, by name.
 */
interface Reading {
  endpoint: string
  client: ChainClient
  height: number
  block: ChainBlock | null
  payments: ReadonlyMap<string, string>
  claims: ReadonlySet<string>
}

type WholeReading = Reading & { block: ChainBlock }

/**
 * Creates the loop that compares the final blocks of a network between a quorum of endpoints. The
 * scanner reads each block from one endpoint, which may omit a deposit or report it as failed. If a
 * quorum returns a deposit that is not recorded, it is recorded. If no quorum agrees on the block,
 * what any of its endpoints returns is recorded: such a deposit waits until a quorum returns it.
 * What contracts paid is not compared, because not every endpoint has a tracer: each endpoint's
 * claims are recorded. Nothing waits for this comparison.
 * @param follows whether this process reads the blocks of the network
 */
export function compareLoop(
  services: Services,
  { network, agreement }: { network: Network; agreement: Agreement },
  follows: () => boolean,
): Loop {
  return {
    name: `compare ${network.code}`,
    everyMs: EVERY_MS,
    due: `exists (select 1 from network_scans where network = '${network.code}'
      and height is not null and compared_height is distinct from least(final_height, height))`,
    async run() {
      if (!follows()) return false
      const position = await positionOf(services, network)
      if (!position || position.compared >= position.final) return false
      const blocks = await scannedBlocks(services, network, position)
      const firsts = await compareOnce(services, network, agreement, blocks)
      let { compared } = position
      for (const block of blocks) {
        const first = firsts.get(block.height)
        if (first === undefined) break
        if (first === 'doubted' && !(await settle(services, network, agreement, block))) break
        compared = block.height
      }
      await moveTo(services, network, position, compared)
      return compared > position.compared && compared < position.final
    },
  }
}

/** Height up to which blocks were compared, as it is stored, and that of the newest final block. */
interface Position {
  stored: string | null
  compared: number
  final: number
}

/**
 * Returns the position; null if the network is not scanned. If it is more than a day behind, blocks are
 * skipped, because endpoints may no longer have them.
 */
async function positionOf({ database, log }: Services, network: Network): Promise<Position | null> {
  const row = await database.one<{ stored: string | null; from: string; final: string }>(
    `select compared_height::text stored, least(final_height, height)::text final, coalesce(compared_height,
       (select min(height) from blocks where network = $1), height)::text "from"
     from network_scans where network = $1 and height is not null`,
    [network.code],
  )
  if (!row) return null
  const [from, final] = [Number(row.from), Number(row.final)]
  const most = network.block_ms ? Math.ceil(DAY_MS / network.block_ms) : BEHIND_MAX
  if (final - from <= most) return { stored: row.stored, compared: from, final }
  // More is skipped than necessary, so that this is logged twice a day and not with each block.
  const to = final - Math.ceil(most / 2)
  await moveTo({ database }, network, row, to)
  log.error(
    { network: network.code, from: from + 1, to },
    'final blocks are more than a day behind in the comparison of endpoints and are skipped; read them again with "custody rescan"',
  )
  return { stored: String(to), compared: to, final }
}

async function moveTo(
  { database }: Pick<Services, 'database'>,
  network: Network,
  { stored }: Pick<Position, 'stored'>,
  compared: number,
): Promise<void> {
  await database.query(
    `update network_scans set compared_height = $3
     where network = $1 and compared_height is not distinct from $2::bigint
       and least(final_height, height) >= $3`,
    [network.code, stored, compared],
  )
}

async function scannedBlocks(
  { database }: Services,
  network: Network,
  { compared, final }: { compared: number; final: number },
): Promise<ScannedBlock[]> {
  const [from, to] = [compared + 1, Math.min(final, compared + TOGETHER)]
  const stored = await database.query<{ height: string; hash: string; endpoint: string | null }>(
    `select height::text, hash, endpoint from blocks where network = $1
       and height between $2 and $3`,
    [network.code, from, to],
  )
  const deposits = await database.query<RecordedPayment & { height: string }>(
    `select block_height::text height, txid, position, address, asset, amount::text, tag, occurrence,
       coinbase
     from deposits where network = $1 and block_height between $2 and $3 and not adopted
       and not claimed`,
    [network.code, from, to],
  )
  return Array.from({ length: to - from + 1 }, (_, at) => {
    const block = stored.find(({ height }) => Number(height) === from + at)
    const own = deposits.filter(({ height }) => Number(height) === from + at)
    return {
      height: from + at,
      hash: block?.hash ?? null,
      endpoint: block?.endpoint ?? null,
      names: new Set(own.map((deposit) => recordedName(network, deposit))),
    }
  })
}

/**
 * Compares blocks with what further endpoints return until a quorum agrees, including the endpoint
 * that the scanner used. A block is agreed on if none of them returns a deposit that is not recorded,
 * otherwise doubted. Blocks that too few endpoints report as final are absent.
 */
async function compareOnce(
  services: Services,
  network: Network,
  agreement: Agreement,
  blocks: readonly ScannedBlock[],
): Promise<Map<number, 'agreed' | 'doubted'>> {
  const results = new Map<number, 'agreed' | 'doubted'>()
  const counts = new Map<number, number>()
  for (const { height, hash, endpoint } of blocks) {
    counts.set(height, endpoint === null ? 0 : 1)
    if (hash === null) results.set(height, 'doubted')
  }
  const left = () => blocks.filter(({ height }) => !results.has(height))
  const votes = agreement.votes((client, name) =>
    readingsOf(
      services,
      network,
      { client, name },
      left().filter(({ endpoint }) => endpoint !== name),
    ),
  )
  for await (const { answer } of votes) {
    for (const reading of answer) {
      const scanned = blocks.find(({ height }) => height === reading.height)
      if (reading.block?.hash === scanned?.hash) await recordClaims(services, network, reading)
      const count = (counts.get(reading.height) ?? 0) + 1
      counts.set(reading.height, count)
      if (
        !scanned ||
        reading.block?.hash !== scanned.hash ||
        lacking(scanned.names, reading).length > 0
      )
        results.set(reading.height, 'doubted')
      else if (count >= agreement.quorum) results.set(reading.height, 'agreed')
    }
    if (left().length === 0) break
  }
  return results
}

/** Returns the names of deposits that an endpoint returns and the record lacks. */
const lacking = (recorded: ReadonlySet<string>, { payments }: Reading): string[] =>
  [...payments.keys()].filter((name) => !recorded.has(name))

/** Returns what an endpoint returns for those blocks that it reports as final. */
async function readingsOf(
  services: Services,
  network: Network,
  { client, name: endpoint }: { client: ChainClient; name: string },
  blocks: readonly ScannedBlock[],
): Promise<Reading[]> {
  if (blocks.length === 0) return []
  // The head is read first, and is the endpoint's own: with another head, a block that it does not
  // have could appear final.
  const tip = await client.tip()
  const final = finalAt(network, tip, tip.height)
  const read = await Promise.all(
    blocks
      .filter(({ height }) => height <= final)
      .map(async ({ height }) => ({ height, block: await client.block(height) })),
  )
  const whole = read.flatMap(({ block }) => block ?? [])
  const all = (addresses: readonly string[]) => [...addresses]
  const payments = await findPayments(services, network, whole, all, client)
  return read.map(({ height, block }) => {
    const own = block ? (payments[whole.indexOf(block)] ?? []) : []
    const known = own.filter(({ transfer }) => services.registry.asset(transfer.asset))
    const [claims, plain] = [
      known.filter(({ transfer }) => transfer.frame),
      known.filter(({ transfer }) => !transfer.frame),
    ]
    const nameOf = ({ transfer, occurrence }: MatchedTransfer) =>
      nameInBlock(network, transfer, occurrence)
    return {
      endpoint,
      client,
      height,
      block,
      payments: new Map(plain.map((each) => [nameOf(each), each.transfer.txid])),
      claims: new Set(claims.map(nameOf)),
    }
  })
}

/**
 * Records what contracts paid in a block that the scanner has read, if a payment that this endpoint
 * reports was never recorded. A claim that its address did not hold is not recorded again.
 */
async function recordClaims(
  services: Services,
  network: Network,
  { block, client, claims }: Reading,
): Promise<void> {
  if (block === null || claims.size === 0) return
  const frames = block.transfers.filter(({ frame }) => frame)
  const recorded = await services.database.query<RecordedPayment>(
    `select txid, position, address, asset, amount::text, tag, occurrence, coinbase
     from deposits where network = $1 and claimed and txid = any($2)`,
    [network.code, frames.map(({ txid }) => txid)],
  )
  const names = new Set(recorded.map((deposit) => recordedName(network, deposit)))
  if ([...claims].every((name) => names.has(name))) return
  const record = await missedIn(services, network, [{ ...block, transfers: frames }], client)
  await services.database.transaction(record)
  services.work.ring()
}

/**
 * Reads a block from all endpoints and records the deposits that were missed.
 * @returns whether a quorum of endpoints reports the block as final
 * @throws RpcUnavailable if a quorum does, but does not return the block
 */
async function settle(
  services: Services,
  network: Network,
  agreement: Agreement,
  scanned: ScannedBlock,
): Promise<boolean> {
  const answers: Reading[] = []
  const votes = agreement.votes((client, name) =>
    readingsOf(services, network, { client, name }, [scanned]),
  )
  for await (const { answer } of votes) answers.push(...answer)
  if (answers.length < agreement.quorum) return false
  const whole = answers.filter((each): each is WholeReading => each.block !== null)
  if (whole.length < agreement.quorum)
    throw new RpcUnavailable(
      `${network.code}: fewer than ${agreement.quorum} endpoints return the final block ${scanned.height}`,
    )
  const groups = Map.groupBy(whole, ({ block, payments }) =>
    JSON.stringify([block.hash, [...payments.keys()].sort()]),
  )
  const group = [...groups.values()].find(({ length }) => length >= agreement.quorum)
  const believed = group
    ? group.slice(0, 1)
    : whole.filter(({ block }) => block.hash === scanned.hash)
  for (const reading of believed)
    if (lacking(scanned.names, reading).length > 0)
      await recordMissed(services, network, reading, {
        whole,
        scanned,
        isAgreed: group !== undefined,
      })
  return true
}

/** Records the deposits of a block that were missed, and logs the endpoints that do not return them. */
async function recordMissed(
  services: Services,
  network: Network,
  reading: WholeReading,
  {
    whole,
    scanned,
    isAgreed,
  }: { whole: readonly WholeReading[]; scanned: ScannedBlock; isAgreed: boolean },
): Promise<void> {
  const { database, metrics, log } = services
  const { block, client, payments } = reading
  const record = await missedIn(services, network, [block], client)
  const count = await database.transaction(async (tx) => {
    const count = await record(tx)
    // The block's record is no longer what one endpoint returned.
    if (!isAgreed)
      await tx.query('update blocks set endpoint = null where network = $1 and hash = $2', [
        network.code,
        block.hash,
      ])
    return count
  })
  services.environment.checkpoint('compare.block')
  services.work.ring()
  if (count === 0) return
  const missed = lacking(scanned.names, reading)
  const others = whole.filter((other) => !missed.every((name) => other.payments.has(name)))
  // The scanner's endpoint did not return them then, even if it does now.
  const readBy = isAgreed && scanned.endpoint !== null ? [scanned.endpoint] : []
  for (const endpoint of new Set([...readBy, ...others.map((other) => other.endpoint)])) {
    metrics.endpointDisagreements.labels(network.code, endpoint).inc()
    log.error(
      {
        network: network.code,
        endpoint,
        block: block.hash,
        txids: missed.map((name) => payments.get(name)),
      },
      'an endpoint does not return deposits that another returned',
    )
  }
}
