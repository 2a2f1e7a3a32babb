import {
  RpcUnavailable,
  type Asset,
  type ChainClient,
  type ChainTip,
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
import type { Forwards, Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Prices } from '../prices/prices.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { assertUncontradicted } from './contradiction.ts'
import { revert } from './credit.ts'
import { expectedBalances } from './expected.ts'
import { insertDeposit, type OwnAddress } from './record.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  work: Notifier
  forwards: Forwards
  invoices: Invoices
  prices: Prices
}

/**
 * Maximum number of checks of an address until two in a row show the expected amount; number of
 * consecutive checks that show the same different amount, after which the attempt ends; pause
 * between checks in milliseconds.
 */
const LOOKS_MAX = 20
const OTHER_LOOKS = 5
const PAUSE_MS = 1000
/** Maximum number of pauses to wait until the scanner has read the block of a check. */
const SCAN_PAUSES_MAX = 30
/**
 * Maximum number of blocks beyond the scanner's position that are read to check a deposit at its
 * depth. If there are more, the check is repeated later.
 */
const UNREAD_MAX = 16

/**
 * Minimum number of blocks on top of an adopted or claimed deposit, and the minimum block time in
 * milliseconds that they must represent: no endpoint stays ahead of the scanner for that long.
 */
const BLOCKS_LEAST = 20
const BURIED_MS_LEAST = 60_000

/**
 * Returns the highest block whose adopted and claimed deposits may now be compared with the chain
 * and credited.
 */
export const adoptedDue = (
  { block_ms: blockMs }: Network,
  final: number,
  scanned: number,
): number =>
  Math.min(
    final,
    scanned -
      Math.max(BLOCKS_LEAST, blockMs === undefined ? 0 : Math.ceil(BURIED_MS_LEAST / blockMs)),
  )

/**
 * Result of one check of an address, in the smallest unit. `busy`: pending staking operations
 * change the balance at unknown times.
 */
interface Look {
  surplus: bigint
  busy: boolean
}

/**
 * Thrown when a surplus was not adopted; the message is for the operator. `surplus`: the surplus
 * that was found instead, if known.
 */
export class NotAdoptable extends Error {
  readonly surplus: bigint | null

  constructor(message: string, surplus: bigint | null = null) {
    super(message)
    this.name = 'NotAdoptable'
    this.surplus = surplus
  }
}

interface Books {
  atMost: bigint
  busy: boolean
  quiet: boolean
}

/**
 * SQL condition on `chain_transactions c`: the transaction may be on its chain without being
 * booked.
 */
const IN_FLIGHT = `c.state in ('BUILT', 'SIGNED', 'EXPIRED')`

/**
 * An address whose balance is compared. `claim`: id of the claimed deposit for which it is compared;
 * null: there is none.
 */
interface Place {
  workspace: string
  address: string
  asset: Asset
  claim: string | null
}

/**
 * Returns the maximum balance of an address that the ledger can explain, including all of our own
 * transactions that pay it and may have been included since the last check. `quiet`: none of our
 * transactions is pending there, and all deposits except adopted ones are at their depth. For a
 * claim, the other claims of the address do not count, because they may be false.
 */
async function readBooks(
  tx: Queryable,
  services: Services,
  network: Network,
  { workspace, address, asset, claim }: Place,
): Promise<Books> {
  const only = { workspace, asset: asset.asset_name }
  const expected =
    (await expectedBalances(tx, services.registry, network, only)).get(
      `${address} ${asset.asset_name}`,
    ) ?? 0n
  const row = await tx.one<{ arriving: string; busy: boolean; quiet: boolean; claimed: string }>(
    `select coalesce(sum(t.amount) filter (where t.destination_id = $2 and t.asset = $3),
       0)::text arriving,
       coalesce(bool_or(t.kind in ('STAKE', 'UNSTAKE', 'RELEASE')), false) busy, count(*) = 0
         and not exists (
         select 1 from transactions a join deposits d on d.workspace_id = a.workspace_id
           and d.transaction_id = a.id
         where a.network = $1 and a.status = 'pending' and a.state = 'CONFIRMING' and d.address = $2
           and d.asset = $3 and not d.adopted and not (d.claimed and $4::uuid is not null)
       ) quiet,
       (select coalesce(sum(d.amount), 0)::text from transactions a join deposits d
           on d.workspace_id = a.workspace_id and d.transaction_id = a.id
         where a.network = $1 and a.status = 'pending' and a.state = 'CONFIRMING' and d.address = $2
           and d.asset = $3 and d.claimed and d.block_height is not null and a.id <> $4) claimed
     from transactions t where t.network = $1 and t.status = 'pending'
       and (t.source_id = $2 or t.destination_id = $2)
       and exists (select 1 from chain_transactions c where c.workspace_id = t.workspace_id
         and c.transaction_id = t.id and ${IN_FLIGHT})`,
    [network.code, address, asset.asset_name, claim],
  )
  return {
    atMost: expected + BigInt(row?.arriving ?? 0) - BigInt(row?.claimed ?? 0),
    busy: row?.busy ?? false,
    quiet: row?.quiet ?? true,
  }
}

/**
 * Waits until the scanner has read a block.
 * @throws NotAdoptable if the scanner does not catch up with the chain
 */
async function awaitScan(
  { database, environment }: Services,
  { code }: Network,
  height: number,
): Promise<void> {
  for (let pauses = 0; ; pauses++) {
    const scan = await database.one<{ height: string | null }>(
      'select height::text from network_scans where network = $1',
      [code],
    )
    if (Number(scan?.height ?? -1) >= height) return
    if (pauses === SCAN_PAUSES_MAX) {
      throw new NotAdoptable(
        `the scan of ${code} does not reach the head of its chain: run "custody doctor" for the reason`,
      )
    }
    await environment.sleep(PAUSE_MS)
  }
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/**
 * A balance in excess of the ledger, in the smallest unit, to adopt as a deposit. `hash`: hash of
 * the transaction to show for it.
 */
interface Surplus {
  owner: OwnAddress
  asset: Asset
  amount: bigint
  hash: string | null
  /** When the address was last known not to have it; absent: now, so that it pays no expired invoice. */
  knownAt?: Date
  /** Called last in the commit that stores the deposit. */
  adopted?: (tx: Queryable, row: TransactionRow) => Promise<void>
}

/**
 * One check of an address: the ledger before the balance was read, the balance, the head after it,
 * and the previous check.
 */
interface Check {
  before: Awaited<ReturnType<typeof readBooks>>
  balance: bigint
  tip: ChainTip
  previous: Look | null
}

/**
 * Adopts the surplus if this check and the previous one show exactly its amount; otherwise returns
 * the result of the check. Returns null if the scanner has not read the block of the check.
 */
async function adoptIfSame(
  services: Services,
  tx: Queryable,
  network: Network,
  { owner, asset, amount, hash, knownAt, adopted }: Surplus,
  { before, balance, tip, previous }: Check,
): Promise<Look | TransactionRow | null> {
  // The lock of this check also keeps the scanner and a rescan from writing deposits concurrently.
  await assertUncontradicted(tx, network.code)
  const scan = await tx.one<{ height: string }>(
    'select height::text from network_scans where network = $1',
    [network.code],
  )
  const block = await tx.one<{ hash: string }>(
    'select hash from blocks where network = $1 and height = $2',
    [network.code, tip.height],
  )
  if (Number(scan?.height ?? -1) < tip.height || block?.hash !== tip.hash) return null
  const { address } = owner
  const place = { workspace: owner.workspace_id, address, asset, claim: null }
  const after = await readBooks(tx, services, network, place)
  const result = {
    surplus: balance - larger(before.atMost, after.atMost),
    busy: before.busy || after.busy,
  }
  if (result.surplus !== amount || result.busy || previous?.surplus !== amount) return result
  const id = services.environment.uuid()
  const transfer = {
    txid: `adopted:${id}`,
    position: 0,
    asset: asset.asset_name,
    address,
    amount,
    tag: null,
    sender: null,
    senders: { addresses: [], complete: false },
    coinbase: false,
  }
  const row = await insertDeposit(services, tx, {
    network,
    asset,
    block: tip,
    match: { transfer, owner, occurrence: 0 },
    knownAt: knownAt ?? tx.now(),
    hash,
    isAdopted: true,
  })
  if (row) await adopted?.(tx, row)
  return row
}

/**
 * Returns what the chain holds at an address; with a quorum an amount that as many endpoints reach, so
 * that one which invents coins is not believed.
 */
async function heldAt(chain: Chain, address: string, asset: Asset): Promise<bigint> {
  const { agreement, network } = chain
  if (!agreement) return chain.balance(address, asset)
  const amounts: bigint[] = []
  const read = async (each: ChainClient) => (await each.balance?.(address, asset)) ?? 0n
  for await (const { answer } of agreement.votes(read)) amounts.push(answer)
  const reached = amounts.sort((a, b) => (a > b ? -1 : a < b ? 1 : 0))[agreement.quorum - 1]
  if (reached === undefined)
    throw new RpcUnavailable(
      `${network.code}: ${amounts.length} of its endpoints return a balance, and ${agreement.quorum} must`,
    )
  return reached
}

/**
 * Creates a deposit without a known sender for the balance that an address of an account-based
 * network holds in excess of the ledger. The deposit is bound to a block in which the chain held
 * it, waits for that block's depth, is then checked again and is screened like any deposit.
 * @throws NotAdoptable
 * @throws Contradicted
 */
export async function adoptSurplus(
  services: Services,
  chain: Chain,
  surplus: Surplus,
): Promise<TransactionRow> {
  const { network, client } = chain
  const { owner, asset } = surplus
  const place = { workspace: owner.workspace_id, address: owner.address, asset, claim: null }
  let last: Look | null = null
  let alike = 0
  for (let look = 0; look < LOOKS_MAX && alike < OTHER_LOOKS; look++) {
    if (look > 0) await services.environment.sleep(PAUSE_MS)
    const before = await readBooks(services.database, services, network, place)
    const balance = await heldAt(chain, owner.address, asset)
    // Everything in the balance is in a block up to this one, which the scanner must have read.
    const tip = await client.tip()
    await awaitScan(services, network, tip.height)
    const previous: Look | null = last
    const outcome: Look | TransactionRow | null = await services.database.transaction((tx) =>
      adoptIfSame(services, tx, network, surplus, { before, balance, tip, previous }),
    )
    if (outcome !== null && 'id' in outcome) {
      services.environment.checkpoint('deposit.adopted')
      services.work.ring()
      return outcome
    }
    alike = outcome !== null && outcome.surplus === last?.surplus ? alike + 1 : 1
    last = outcome ?? last
  }
  if (last === null)
    throw new NotAdoptable(
      `the chain of ${network.code} changed while it was read: try again later`,
    )
  if (last.busy)
    throw new NotAdoptable(
      'staking transactions of this address are in progress: try again when they have ended',
    )
  throw new NotAdoptable('the surplus of the address is smaller than this amount', last.surplus)
}

/**
 * Returns the amount that an address receives in blocks that the scanner has not read; null if it
 * cannot be determined now. Everything in a balance that was read before is in a block up to the
 * current head.
 */
async function unreadAt(
  client: ChainClient,
  scanned: ScannedTo,
  { address, asset }: Place,
): Promise<bigint | null> {
  const tip = await client.tip()
  if (tip.height < scanned.height || tip.height - scanned.height > UNREAD_MAX) return null
  let { hash } = scanned
  let amount = 0n
  for (let height = scanned.height + 1; height <= tip.height; height++) {
    const block = await client.block(height)
    if (!block || block.parent !== hash) return null
    for (const each of block.transfers)
      if (each.address === address && each.asset === asset.asset_name) amount += each.amount
    ;({ hash } = block)
  }
  return hash === tip.hash ? amount : null
}

/** The last block that the scanner has read. */
type ScannedTo = Pick<ChainTip, 'height' | 'hash'>

/**
 * A deposit that the balance of its address must confirm: it was adopted, or (`claimed`) an endpoint's
 * tracer reported it.
 */
interface Unproven {
  workspace_id: string
  id: string
  claimed: boolean
}

/** Balance of an address, and the part of it that it received in blocks the scanner has not read. */
interface Reading {
  held: bigint
  unread: bigint
}

async function readingOf(
  client: ChainClient,
  balance: Chain['balance'],
  scanned: ScannedTo,
  place: Place,
): Promise<Reading | null> {
  const held = await balance(place.address, place.asset)
  const unread = await unreadAt(client, scanned, place)
  return unread === null ? null : { held, unread }
}

/**
 * Reads the balance of an address: at every endpoint if several must agree, because the endpoint that
 * reports a false payment can also report a false balance.
 * @returns the readings, and how many of them must be alike; null: they were read a moment ago
 */
async function readingsAt(
  chain: Chain,
  scanned: ScannedTo,
  { id, ...place }: Place & { id: string },
): Promise<{ readings: Reading[]; quorum: number } | null> {
  const { client, agreement } = chain
  if (!agreement) {
    const reading = await readingOf(client, (...of) => chain.balance(...of), scanned, place)
    return { readings: reading ? [reading] : [], quorum: 1 }
  }
  if (!agreement.isDue(`balance for ${id}`, true)) return null
  const readings: Reading[] = []
  const votes = agreement.votes((each) =>
    readingOf(
      each,
      (...of) => (each.balance ? each.balance(...of) : chain.balance(...of)),
      scanned,
      place,
    ),
  )
  for await (const { answer } of votes) if (answer) readings.push(answer)
  return { readings, quorum: agreement.quorum }
}

/**
 * Whether the chain holds a deposit in addition to everything that was booked since, now that its
 * block is final: an endpoint ahead of the scanner may have shown another deposit twice, or a tracer
 * may report a payment that was not made. If the chain does not hold it, the deposit is reverted.
 * Amounts in blocks that the scanner has not read are not booked yet and do not count.
 */
async function isStillHeld(
  services: Services,
  { workspace_id: workspace, id, claimed }: Unproven,
  scanned: ScannedTo,
): Promise<boolean> {
  const { database, registry } = services
  const row = await database.one<TransactionRow>(
    'select * from transactions where workspace_id = $1 and id = $2',
    [workspace, id],
  )
  const asset = row && registry.asset(row.asset)
  if (!row || !asset) return false
  const chain = services.networks.get(row.network)
  const address = row.destination_id as string
  const place = { workspace, address, asset, claim: claimed ? id : null }
  const before = await readBooks(database, services, chain.network, place)
  const result = await readingsAt(chain, scanned, { ...place, id })
  if (result === null) return false
  const { readings, quorum } = result
  const after = await readBooks(database, services, chain.network, place)
  // The bounds of the ledger include the deposit itself.
  const least = larger(before.atMost, after.atMost)
  const [holding, lacking] = [
    readings.filter(({ held, unread }) => held - unread >= least),
    readings.filter(({ held, unread }) => held < least && unread === 0n),
  ]
  if (holding.length >= quorum) return true
  if (before.quiet && after.quiet && lacking.length >= quorum)
    await revertUnheld(services, row, claimed)
  return false
}

/** Reverts a deposit that its address does not hold. */
async function revertUnheld(
  services: Services,
  { workspace_id: workspace, id, destination_id: address, asset }: TransactionRow,
  isClaimed: boolean,
): Promise<void> {
  await services.database.transaction(async (tx) => {
    const fresh = await tx.one<TransactionRow>(
      `select * from transactions where workspace_id = $1 and id = $2 and state = 'CONFIRMING'
        for update`,
      [workspace, id],
    )
    if (fresh)
      await revert(
        services,
        tx,
        fresh,
        isClaimed
          ? 'the address does not have the amount that an endpoint reported; see "custody audit"'
          : 'the address no longer has the amount that was adopted; see "custody audit"',
      )
  })
  const details = { transaction: id, address, asset }
  if (isClaimed)
    services.log.error(
      details,
      'an endpoint reported a payment of a contract that its address does not hold; it was not credited',
    )
  else
    services.log.warn(
      details,
      'an adopted deposit is no longer on its address; it was not credited',
    )
}

/**
 * Yields those adopted and claimed deposits at their depth that the chain holds. If the endpoint
 * does not respond, the rest waits for the next pass; such a deposit delays nothing else on its
 * network.
 */
export async function* stillHeld<T extends Unproven>(
  services: Services,
  network: Network,
  unproven: readonly T[],
  scanned: ScannedTo,
): AsyncGenerator<T> {
  for (const each of unproven) {
    let isHeld
    try {
      isHeld = await isStillHeld(services, each, scanned)
    } catch (error) {
      const err = reasonOf(error)
      services.log.warn(
        { network: network.code, transaction: each.id, err },
        'a deposit cannot be compared with the balance of its address yet; this is retried',
      )
      return
    }
    if (isHeld) yield each
  }
}
