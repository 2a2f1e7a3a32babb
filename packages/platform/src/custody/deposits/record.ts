import {
  RpcUnavailable,
  traitsOf,
  type Asset,
  type ChainBlock,
  type ChainClient,
  type ChainTransfer,
  type Network,
  type Senders,
  type Registry,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Prices } from '../prices/prices.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import { valueNow } from '../prices/value.ts'
import { isDust } from '../assets/dust.ts'
import { occurrences, tagOf } from './identity.ts'
import { noteUnrecorded, ownSendersOf } from '../addresses/unrecorded.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
  invoices: Invoices
  prices: Prices
}

type StatusClient = Pick<ChainClient, 'status'>

/** Maximum time that the scanner waits for the senders of one block's deposits, in milliseconds. */
const SENDERS_PATIENCE_MS = 3000

export interface OwnAddress {
  address: string
  workspace_id: string
  sub_account_id: string | null
  path_index: number
  kind: string
}
/** A transfer to a platform address. `occurrence`: see {@link occurrences}. */
export interface MatchedTransfer {
  transfer: ChainTransfer
  owner: OwnAddress
  occurrence: number
}

/**
 * Returns, for each block, the transfers to platform addresses that the platform did not make
 * itself.
 * @param mayBeOurs filters addresses; it never removes a platform address
 * @param client the client that returned the blocks
 */
export async function findDeposits(
  services: Services,
  network: Network,
  blocks: readonly ChainBlock[],
  mayBeOurs: (addresses: readonly string[]) => string[],
  client: StatusClient,
): Promise<MatchedTransfer[][]> {
  const matches = await findPayments(services, network, blocks, mayBeOurs, client)
  for (const each of matches) await nameSenders(services, network, each)
  return matches
}

/** Like {@link findDeposits}, without the senders that the blocks do not contain. */
export async function findPayments(
  services: Pick<Services, 'database' | 'log'>,
  network: Network,
  blocks: readonly ChainBlock[],
  mayBeOurs: (addresses: readonly string[]) => string[],
  client: StatusClient,
): Promise<MatchedTransfer[][]> {
  const addresses = [
    ...new Set(
      mayBeOurs(blocks.flatMap(({ transfers }) => transfers.map(({ address }) => address))),
    ),
  ]
  if (addresses.length === 0) return blocks.map(() => [])
  const owners = new Map(
    (
      await services.database.query<OwnAddress>(
        `select address, workspace_id, sub_account_id, path_index, kind from chain_addresses
     where network = $1 and address = any($2)`,
        [network.code, addresses],
      )
    ).map((row) => [row.address, row]),
  )
  const matches: MatchedTransfer[][] = []
  for (const block of blocks)
    matches.push(await findOwned(services, network, block, owners, client))
  return matches
}

async function findOwned(
  services: Pick<Services, 'database' | 'log'>,
  network: Network,
  block: ChainBlock,
  owners: ReadonlyMap<string, OwnAddress>,
  client: StatusClient,
): Promise<MatchedTransfer[]> {
  const numbers = occurrences(block.transfers.filter(({ address }) => owners.has(address)))
  const hits = [...numbers].map(([transfer, occurrence]) => ({
    transfer,
    owner: owners.get(transfer.address) as OwnAddress,
    occurrence,
  }))
  if (hits.length === 0) return []
  // Fuel and sweeps are internal transfers; change is known from its own transaction.
  const own = await services.database.query<{ hash: string; kind: string }>(
    `select c.hash, t.kind from chain_transactions c
      join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
     where c.network = $1 and c.hash = any($2)`,
    [network.code, hits.map(({ transfer }) => transfer.txid)],
  )
  const kinds = new Map(own.map(({ hash, kind }) => [hash, kind]))
  const ownSenders = await ownSendersOf(services, network, hits, kinds)
  const matches: typeof hits = []
  for (const hit of hits) {
    const { transfer, owner } = hit
    const kind = kinds.get(transfer.txid)
    const workspace = ownSenders.get(transfer.sender ?? '')
    if (kind === undefined && workspace !== undefined) {
      await noteUnrecorded(services, network, transfer, workspace)
      continue
    }
    if (kind !== 'FUEL' && kind !== 'SWEEP' && !(owner.kind === 'change' && kind !== undefined))
      matches.push(hit)
  }
  const real: typeof matches = []
  for (const hit of matches) {
    // Native value on an account-based chain only moves if the transaction succeeded.
    if (hit.transfer.position === -1) {
      const status = await client.status(hit.transfer.txid, undefined, { fee: false })
      if (status.state !== 'included' || status.blockHash !== block.hash) {
        throw new RpcUnavailable(`${network.code}: block ${block.height} changed while it was read`)
      }
      if (!status.succeeded) continue
    }
    real.push(hit)
  }
  return real
}

/**
 * Adds the senders to deposits whose blocks do not contain them. This may need one request for each
 * of up to a thousand parent transactions, so the scanner only waits for a moment. Senders that are
 * still unknown are queried again before crediting.
 */
async function nameSenders(
  services: Services,
  network: Network,
  matches: readonly MatchedTransfer[],
): Promise<void> {
  const unnamed = matches.filter(({ transfer }) => transfer.senders === null && !transfer.coinbase)
  if (unnamed.length === 0) return
  const answered = new AbortController()
  let isLate = false
  const late = services.environment.sleep(SENDERS_PATIENCE_MS, answered.signal).then(() => {
    isLate = true
    return null
  })
  const requests = new Map<string, Senders | null>()
  for (const { transfer } of unnamed) {
    const { txid } = transfer
    if (!requests.has(txid))
      requests.set(
        txid,
        isLate ? null : await Promise.race([sendersSoon(services, network, txid), late]),
      )
    transfer.senders = requests.get(txid) ?? null
    transfer.sender ??= transfer.senders?.addresses[0] ?? null
  }
  answered.abort()
}

async function sendersSoon(
  services: Services,
  network: Network,
  txid: string,
): Promise<Senders | null> {
  try {
    return (await services.networks.get(network.code).coins?.senders(txid)) ?? null
  } catch (error) {
    const err = reasonOf(error)
    services.log.warn(
      { network: network.code, txid, err },
      'the senders of a deposit cannot be queried yet; this is retried',
    )
    return null
  }
}

/**
 * Returns the wallet of a deposit: the sub-account's wallet if there is no tag, otherwise the
 * wallet to which the tag was assigned, if any.
 */
async function walletOf(
  tx: Queryable,
  network: Network,
  asset: Asset,
  { transfer, owner }: Pick<MatchedTransfer, 'transfer' | 'owner'>,
): Promise<{ id: string } | undefined> {
  const tag = tagOf(transfer)
  if (tag === null) {
    const wallet = await ownWallet(tx, owner, asset.asset_name)
    if (wallet || asset.type !== 'native' || traitsOf(network).deposits !== 'spendable')
      return wallet
    // The address was assigned, so its wallet existed and was lost when an older database was
    // restored. It is created again for these coins.
    return tx.one(
      `insert into wallets (sub_account_id, asset, workspace_id, network) values ($1, $2, $3, $4)
        returning id`,
      [owner.sub_account_id, asset.asset_name, owner.workspace_id, asset.network],
    )
  }
  return tx.one(
    `select wallet_id id from wallet_addresses where workspace_id = $4 and network = $1
      and address = $2 and address_tag = $3`,
    [asset.network, transfer.address, tag, owner.workspace_id],
  )
}

async function ownWallet(
  tx: Queryable,
  owner: OwnAddress,
  asset: string,
): Promise<{ id: string } | undefined> {
  return tx.one(
    'select id from wallets where workspace_id = $3 and sub_account_id = $1 and asset = $2',
    [owner.sub_account_id, asset, owner.workspace_id],
  )
}

/**
 * A transfer to a platform address in a block. `knownAt`: when the chain was last read up to its
 * head without this deposit.
 */
interface DetectedDeposit {
  network: Network
  block: ChainBlock
  match: MatchedTransfer
  knownAt: Date
}

/**
 * Records a detected deposit. A deposit that a reorganisation reverted becomes pending again if
 * exactly the same deposit returns. A transfer with another address, asset, amount or tag is a
 * separate deposit.
 * @returns whether the deposit is new or returned; false if it was already recorded
 */
export async function recordDeposit(
  services: Services,
  tx: Queryable,
  detected: DetectedDeposit,
): Promise<boolean> {
  const { network, block, match, knownAt } = detected
  const { transfer, owner, occurrence } = match
  const asset = services.registry.asset(transfer.asset)
  if (!asset) return false
  // A stranger's contract can pay crumbs to many addresses for almost nothing.
  if (transfer.frame && isDust(services.registry, asset, transfer.amount)) return false
  const tag = tagOf(transfer)
  const existing = await tx.one<{ transaction_id: string; block_hash: string | null }>(
    `select transaction_id, block_hash from deposits
     where workspace_id = $8 and network = $1 and txid = $2 and address = $3 and asset = $4
       and amount = $5
       and tag is not distinct from $6 and occurrence = $7`,
    [
      network.code,
      transfer.txid,
      transfer.address,
      asset.asset_name,
      transfer.amount.toString(),
      tag,
      occurrence,
      owner.workspace_id,
    ],
  )
  if (existing?.block_hash === block.hash) {
    if (traitsOf(network).deposits === 'spendable')
      await moveCoin(tx, detected, existing.transaction_id)
    return false
  }
  if (!existing?.block_hash && (await isInAdopted(services, tx, network, block, match)))
    return false
  if (existing) {
    // Two blocks of one chain cannot contain the same deposit, so an endpoint that reports it twice
    // is not trusted.
    if (existing.block_hash !== null) {
      const details = {
        network: network.code,
        txid: transfer.txid,
        block: block.hash,
        recorded: existing.block_hash,
      }
      services.log.error(
        details,
        'an endpoint returned the same deposit in two blocks of the chain; it is credited only once',
      )
      return false
    }
    await restoreDeposit(services, tx, detected, existing.transaction_id)
  } else {
    await insertDeposit(services, tx, {
      network,
      asset,
      block,
      match,
      knownAt,
      hash: transfer.withoutTransaction ? null : transfer.txid,
    })
  }
  if (traitsOf(network).deposits === 'spendable')
    await recordCoin(tx, network, block, transfer, owner)
  return true
}

/** Makes a deposit pending again that returned in another block after a reorganisation. */
async function restoreDeposit(
  services: Services,
  tx: Queryable,
  { block, match: { transfer, owner } }: DetectedDeposit,
  id: string,
): Promise<void> {
  // The sender may differ in the new block: a contract may pay out an amount that another address
  // paid in.
  await tx.query(
    `update deposits set block_height = $2, block_hash = $3, position = $4, sender = $5,
       senders = $6, senders_complete = $7
       where workspace_id = $8 and transaction_id = $1`,
    [id, block.height, block.hash, transfer.position, ...sendersFor(transfer), owner.workspace_id],
  )
  const restored = await tx.one<TransactionRow>(
    `update transactions set state = 'CONFIRMING', status = 'pending', failure_reason = null,
           waiting = null, source_id = $2,
           updated_at = $3
       where workspace_id = $4 and id = $1 and state = 'REORGED' returning *`,
    [id, transfer.sender, tx.now(), owner.workspace_id],
  )
  if (restored?.kind === 'DEPOSIT') await emitDetected(services, tx, owner, restored)
}

/**
 * A deposit to insert. `hash`: the transaction to show for it, if any. `isAdopted`: it was created
 * from a balance in excess of the ledger.
 */
interface NewDeposit extends Omit<DetectedDeposit, 'block'> {
  asset: Asset
  block: Pick<ChainBlock, 'height' | 'hash'>
  hash: string | null
  isAdopted?: boolean
}

/**
 * Inserts a detected deposit.
 * @returns its transaction
 */
export async function insertDeposit(
  services: Services,
  tx: Queryable,
  { network, asset, block, match, knownAt, hash, isAdopted = false }: NewDeposit,
): Promise<TransactionRow> {
  const { transfer, owner, occurrence } = match
  const tag = tagOf(transfer)
  const tank = owner.kind === 'tank'
  const wallet = tank ? undefined : await walletOf(tx, network, asset, match)
  const id = services.environment.uuid()
  const row = await insertTransaction(tx, {
    id,
    kind: tank ? 'TANK_DEPOSIT' : 'DEPOSIT',
    state: 'CONFIRMING',
    next_run_at: null,
    workspace_id: owner.workspace_id,
    sub_account_id: owner.sub_account_id,
    wallet_id: wallet?.id ?? null,
    asset: asset.asset_name,
    network: network.code,
    amount: transfer.amount,
    fee_asset: asset.fee_asset,
    source_type: 'EXTERNAL',
    source_id: transfer.sender,
    destination_type: tank ? 'GAS_TANK' : 'INTERNAL',
    destination_id: transfer.address,
    address_tag: tag,
    hash,
    confirmations: 1,
    // The value is computed with the price in memory, or is null without a price, so that crediting
    // is never delayed. It does not change if a reorganisation mines the deposit again.
    amount_usd: valueNow(services, asset, transfer.amount),
  })
  await tx.query(
    `insert into deposits (transaction_id, network, txid, position, address, sender, senders,
       senders_complete,
       block_height, block_hash, coinbase, asset, amount, tag, occurrence, known_at, workspace_id,
         adopted, claimed)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
    [
      id,
      network.code,
      transfer.txid,
      transfer.position,
      transfer.address,
      ...sendersFor(transfer),
      block.height,
      block.hash,
      transfer.coinbase,
      asset.asset_name,
      transfer.amount.toString(),
      tag,
      occurrence,
      knownAt,
      owner.workspace_id,
      isAdopted,
      transfer.frame === true,
    ],
  )
  if (!tank) await emitDetected(services, tx, owner, row)
  return row
}

/**
 * Whether an unrecorded transfer is part of an adopted surplus: a surplus of its address was
 * adopted for a block at or above the transfer's block, and that surplus contained everything that
 * was not booked.
 */
async function isInAdopted(
  services: Services,
  tx: Queryable,
  network: Network,
  block: ChainBlock,
  { owner, transfer }: MatchedTransfer,
): Promise<boolean> {
  const { address, asset, amount, txid } = transfer
  const adopted = await tx.one<{ transaction_id: string }>(
    `select transaction_id from deposits
     where adopted and network = $1 and address = $2 and asset = $3 and block_height >= $4
       and workspace_id = $5
     order by block_height limit 1`,
    [network.code, address, asset, block.height, owner.workspace_id],
  )
  if (!adopted) return false
  services.log.warn(
    {
      network: network.code,
      txid,
      address,
      asset,
      amount: amount.toString(),
      transaction: adopted.transaction_id,
    },
    'a transfer that the scan missed is part of an adopted surplus; it is not credited again',
  )
  return true
}

/** Emits the event of a detected deposit and updates the invoice that it pays. */
async function emitDetected(
  services: Services,
  tx: Queryable,
  owner: OwnAddress,
  row: TransactionRow,
): Promise<void> {
  const shown = stringifyJson(presentTransaction(row, services.registry))
  await emit(tx, owner.workspace_id, owner.sub_account_id, 'deposit.detected', shown)
  await services.invoices.moved(tx, row)
}

/** Returns the values of the columns `sender`, `senders` and `senders_complete`. */
function sendersFor({
  sender,
  senders,
}: ChainTransfer): [string | null, string | null, boolean | null] {
  return [sender, senders && JSON.stringify(senders.addresses), senders && senders.complete]
}

/**
 * SQL condition on `utxos u`: the coin's owner may change. Our own change output keeps its owner,
 * and a coin that one workspace is spending cannot move to another.
 */
const IS_MOVABLE = `u.origin = 'deposit' and (u.spent_by is null or u.workspace_id = excluded.workspace_id)`

/**
 * Records the coin of a deposit. Its owner is the current owner of its address, and it is not
 * spendable until it is credited.
 */
async function recordCoin(
  tx: Queryable,
  network: Network,
  block: ChainBlock,
  transfer: ChainTransfer,
  owner: OwnAddress,
): Promise<void> {
  const wallet = await ownWallet(tx, owner, transfer.asset)
  if (!wallet) return
  await tx.query(
    `insert into utxos as u (network, txid, vout, address, wallet_id, value, path_index, origin,
      spendable, block_height, workspace_id)
     values ($1, $2, $3, $4, $5, $6, $7, 'deposit', false, $8, $9)
     on conflict (network, txid, vout) do update set block_height = excluded.block_height,
       address = case when ${IS_MOVABLE} then excluded.address else u.address end,
       workspace_id = case when ${IS_MOVABLE} then excluded.workspace_id else u.workspace_id end,
       wallet_id = case when ${IS_MOVABLE} then excluded.wallet_id else u.wallet_id end,
       value = case when ${IS_MOVABLE} then excluded.value else u.value end,
       path_index = case when ${IS_MOVABLE} then excluded.path_index else u.path_index end`,
    [
      network.code,
      transfer.txid,
      transfer.position,
      transfer.address,
      wallet.id,
      transfer.amount.toString(),
      owner.path_index,
      block.height,
      owner.workspace_id,
    ],
  )
}

/**
 * Moves a coin that waits for its depth if an endpoint now reports it at another position of its
 * transaction. The last reported position counts, and the coin is credited only there.
 */
async function moveCoin(
  tx: Queryable,
  { network, block, match: { transfer, owner } }: DetectedDeposit,
  deposit: string,
): Promise<void> {
  const moved = await tx.one<{ position: number }>(
    `update deposits d set position = $3, coinbase = $4 from deposits old, transactions t
     where d.workspace_id = $1 and d.transaction_id = $2 and (d.position, d.coinbase) <> ($3, $4)
       and old.workspace_id = $1 and old.transaction_id = $2 and t.workspace_id = $1 and t.id = $2
         and t.state = 'CONFIRMING'
     returning old.position`,
    [owner.workspace_id, deposit, transfer.position, transfer.coinbase],
  )
  if (!moved) return
  await removeCoin(tx, {
    workspace: owner.workspace_id,
    network,
    txid: transfer.txid,
    position: moved.position,
  })
  await recordCoin(tx, network, block, transfer, owner)
}

/** Removes a coin that no block contains, unless a deposit that does is at its position. */
export async function removeCoin(
  tx: Queryable,
  {
    workspace,
    network,
    txid,
    position,
  }: { workspace: string; network: Network; txid: string; position: number },
): Promise<void> {
  await tx.query(
    `delete from utxos u where u.workspace_id = $1 and u.network = $2 and u.txid = $3
       and u.vout = $4 and u.origin = 'deposit'
       and not u.spendable and u.spent_by is null and not exists (
         select 1 from deposits d where d.workspace_id = $1 and d.network = $2 and d.txid = $3
           and d.position = $4 and d.block_height is not null)`,
    [workspace, network.code, txid, position],
  )
}
