import type { Asset, ChainTip, Network } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Queryable } from '../database/pool.ts'
import type { Chain } from '../engine/chain.ts'
import type { Services } from '../engine/services.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { revert } from './credit.ts'
import { expectedBalances } from './expected.ts'
import { insertDeposit, type OwnAddress } from './record.ts'

/**
 * How often it is looked at until two looks in a row show the amount, and how many that show
 * another one suffice; and the pause.
 */
const LOOKS_MAX = 20
const OTHER_LOOKS = 5
const PAUSE_MS = 1000
/** For how many pauses the scan is waited for until it has read what a look has shown. */
const SCAN_PAUSES_MAX = 30
/**
 * Blocks beyond the scan that are read for one look at a deposit at its depth; with more it is
 * looked at again later.
 */
const UNREAD_MAX = 16

/**
 * Blocks under an adopted deposit at least, and for how long they are made: endpoints that are
 * ahead of the scan are not for so long.
 */
const BLOCKS_LEAST = 20
const BURIED_MS_LEAST = 60_000

/**
 * The highest block by which a deposit may be adopted to be compared with the chain and credited
 * now.
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
 * What one look at an address has shown, in the smallest unit. `busy`: stakes under way there
 * change it at moments that are not known.
 */
interface Look {
  surplus: bigint
  busy: boolean
}

/**
 * A surplus was not adopted; the message is for the operator. `surplus`: what there is instead,
 * where that is known.
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

/** Of `chain_transactions c`, in SQL: it may be on its chain without the books knowing it. */
const IN_FLIGHT = `c.state in ('BUILT', 'SIGNED', 'EXPIRED')`

/**
 * The most that an address can hold of what the books know: with all of our own transactions that
 * pay it and may have been included since they were looked at. `quiet`: none of ours is under way
 * there, and all deposits are at their depth but for adopted ones.
 */
async function readBooks(
  tx: Queryable,
  services: Services,
  network: Network,
  { workspace, address, asset }: { workspace: string; address: string; asset: Asset },
): Promise<Books> {
  const only = { workspace, asset: asset.asset_name }
  const expected =
    (await expectedBalances(tx, services.registry, network, only)).get(
      `${address} ${asset.asset_name}`,
    ) ?? 0n
  const row = await tx.one<{ arriving: string; busy: boolean; quiet: boolean }>(
    `select coalesce(sum(t.amount) filter (where t.destination_id = $2 and t.asset = $3), 0)::text arriving,
       coalesce(bool_or(t.kind in ('STAKE', 'UNSTAKE', 'RELEASE')), false) busy, count(*) = 0 and not exists (
         select 1 from transactions a join deposits d on d.workspace_id = a.workspace_id and d.transaction_id = a.id
         where a.network = $1 and a.status = 'pending' and a.state = 'CONFIRMING' and d.address = $2 and d.asset = $3 and not d.adopted
       ) quiet
     from transactions t where t.network = $1 and t.status = 'pending' and (t.source_id = $2 or t.destination_id = $2)
       and exists (select 1 from chain_transactions c where c.workspace_id = t.workspace_id and c.transaction_id = t.id and ${IN_FLIGHT})`,
    [network.code, address, asset.asset_name],
  )
  return {
    atMost: expected + BigInt(row?.arriving ?? 0),
    busy: row?.busy ?? false,
    quiet: row?.quiet ?? true,
  }
}

/** Waits for the scan to have read a block. @throws NotAdoptable where it does not come up to it */
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
 * Makes a deposit without a known sender of all that an address of an account-based network holds
 * beyond the books. It is bound to a block by which the chain held it, waits for that block's
 * depth, is looked at again then, and is screened as any deposit is.
 * @param amount what it must be, in the smallest unit @param hash of the transaction that is
 *   shown for it
 * @throws NotAdoptable
 */
export async function adoptSurplus(
  services: Services,
  chain: Chain,
  {
    owner,
    asset,
    amount,
    hash,
  }: { owner: OwnAddress; asset: Asset; amount: bigint; hash: string | null },
): Promise<TransactionRow> {
  const { network, client } = chain
  const place = { workspace: owner.workspace_id, address: owner.address, asset }
  const { address } = owner
  let last: Look | null = null
  let alike = 0
  for (let look = 0; look < LOOKS_MAX && alike < OTHER_LOOKS; look++) {
    if (look > 0) await services.environment.sleep(PAUSE_MS)
    const before = await readBooks(services.database, services, network, place)
    const held = await chain.balance(address, asset)
    // Whatever the balance shows is in a block up to this one, which the scan has to have read.
    const tip = await client.tip()
    await awaitScan(services, network, tip.height)
    const previous: Look | null = last
    const outcome = await services.database.transaction(
      async (tx): Promise<Look | TransactionRow | null> => {
        // Neither the scan nor a rescan writes deposits meanwhile.
        const scan = await tx.one<{ height: string }>(
          'select height::text from network_scans where network = $1 for update',
          [network.code],
        )
        const block = await tx.one<{ hash: string }>(
          'select hash from blocks where network = $1 and height = $2',
          [network.code, tip.height],
        )
        if (Number(scan?.height ?? -1) < tip.height || block?.hash !== tip.hash) return null
        const after = await readBooks(tx, services, network, place)
        const seen = {
          surplus: held - larger(before.atMost, after.atMost),
          busy: before.busy || after.busy,
        }
        if (seen.surplus !== amount || seen.busy || previous?.surplus !== amount) return seen
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
        return insertDeposit(services, tx, {
          network,
          asset,
          block: tip,
          found: { transfer, owner, occurrence: 0 },
          knownAt: tx.now(),
          hash,
          isAdopted: true,
        })
      },
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
 * What the blocks that the scan has not read bring to an address; null: it cannot be known now.
 * Whatever a balance shows that was asked for before is in a block up to the tip of now.
 */
async function unreadAt(
  { client }: Chain,
  scanned: ScannedTo,
  address: string,
  asset: Asset,
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

/** The last block that the scan has read. */
type ScannedTo = Pick<ChainTip, 'height' | 'hash'>

/**
 * Whether the chain still holds an adopted deposit beside all that has come into the books since,
 * now that its block is final: an endpoint that was ahead of the scan may have shown another
 * deposit twice. What the chain does not hold is taken back. What comes in blocks that the scan has
 * not read, so that the books do not know it, does not count.
 */
async function isStillHeld(
  services: Services,
  workspace: string,
  id: string,
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
  const place = { workspace, address, asset }
  const before = await readBooks(database, services, chain.network, place)
  const held = await chain.balance(address, asset)
  const unread = await unreadAt(chain, scanned, address, asset)
  if (unread === null) return false
  const after = await readBooks(database, services, chain.network, place)
  // The books count the deposit itself.
  if (held - unread >= larger(before.atMost, after.atMost)) return true
  if (!before.quiet || !after.quiet || unread > 0n) return false
  await database.transaction(async (tx) => {
    const fresh = await tx.one<TransactionRow>(
      `select * from transactions where workspace_id = $1 and id = $2 and state = 'CONFIRMING' for update`,
      [workspace, id],
    )
    if (fresh)
      await revert(
        services,
        tx,
        fresh,
        'the chain does not contain the adopted amount; see "custody audit"',
      )
  })
  services.log.warn(
    { transaction: id, address, asset: row.asset },
    'an adopted deposit is no longer on the address, and was not credited',
  )
  return false
}

/**
 * Those of some adopted deposits at their depth that the chain still holds, one after another.
 * Where the endpoint does not answer, the rest waits for the next pass: an adopted deposit holds
 * back nothing else of its network.
 */
export async function* stillHeld<T extends { workspace_id: string; id: string }>(
  services: Services,
  network: Network,
  adopted: readonly T[],
  scanned: ScannedTo,
): AsyncGenerator<T> {
  for (const each of adopted) {
    let isHeld
    try {
      isHeld = await isStillHeld(services, each.workspace_id, each.id, scanned)
    } catch (error) {
      const err = reasonOf(error)
      services.log.warn(
        { network: network.code, transaction: each.id, err },
        'an adopted deposit cannot be compared with the chain yet',
      )
      return
    }
    if (isHeld) yield each
  }
}
