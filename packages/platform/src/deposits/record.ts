import type { ChainBlock, ChainTransfer, Network } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../database/pool.ts'
import { emit } from '../ledger/post.ts'
import { traitsOf } from '../networks/traits.ts'
import type { Services } from '../services.ts'
import { presentTransaction, type TransactionRow } from '../transactions/present.ts'

interface OwnAddress { address: string; workspace_id: string; sub_account_id: string | null; path_index: number; kind: string }

/** The transfers of a block that reach addresses of ours and are no doing of the platform itself. */
export async function findDeposits(services: Services, network: Network, block: ChainBlock): Promise<{ transfer: ChainTransfer; owner: OwnAddress }[]> {
  const addresses = [...new Set(block.transfers.map((transfer) => transfer.address))]
  if (addresses.length === 0) return []
  const owners = new Map((await services.database.query<OwnAddress>(
    'select address, workspace_id, sub_account_id, path_index, kind from chain_addresses where network = $1 and address = any($2)', [network.code, addresses])).map((row) => [row.address, row]))
  const hits = block.transfers.flatMap((transfer) => {
    const owner = owners.get(transfer.address)
    return owner ? [{ transfer, owner }] : []
  })
  if (hits.length === 0) return []
  // Fuel and sweeps stay inside the books; change is known from its own transaction.
  const own = await services.database.query<{ hash: string; kind: string }>(
    `select c.hash, t.kind from chain_transactions c join transactions t on t.id = c.transaction_id where c.network = $1 and c.hash = any($2)`,
    [network.code, hits.map(({ transfer }) => transfer.txid)])
  const kinds = new Map(own.map(({ hash, kind }) => [hash, kind]))
  const senders = [...new Set(hits.flatMap(({ transfer }) => (transfer.sender !== null && !kinds.has(transfer.txid) ? [transfer.sender] : [])))]
  const ownSenders = new Set((senders.length === 0 ? [] : await services.database.query<{ address: string }>(
    `select address from chain_addresses where network = $1 and address = any($2) and kind in ('tank', 'deposit')`, [network.code, senders])).map((row) => row.address))
  const found = hits.filter(({ transfer, owner }) => {
    const kind = kinds.get(transfer.txid)
    if (kind === undefined && transfer.sender !== null && ownSenders.has(transfer.sender)) {
      // Only the platform moves coins from there. A database that does not know it is older than the chain.
      services.log.error({ network: network.code, txid: transfer.txid, sender: transfer.sender }, 'a transaction of our own is unknown here and is not credited; was an old backup restored?')
      return false
    }
    return kind !== 'FUEL' && kind !== 'SWEEP' && !(owner.kind === 'change' && kind !== undefined)
  })
  const real: typeof found = []
  for (const hit of found) {
    // Native value on an account-based chain moves only if the transaction succeeded.
    if (hit.transfer.position === -1) {
      const status = await services.networks.client(network.code).status(hit.transfer.txid)
      if (status.state !== 'included' || status.blockHash !== block.hash) throw new Error(`${network.code}: block ${block.height} changed while it was read`)
      if (!status.succeeded) continue
    }
    if (traitsOf(network).deposits === 'spendable') hit.transfer.sender = (await services.networks.coins(network.code).senders(hit.transfer.txid).catch(() => []))[0] ?? null
    real.push(hit)
  }
  return real
}

/** The wallet that a deposit is for: without a tag the sub-account's, with one that was handed out its wallet, else nobody's. */
async function walletOf(tx: Queryable, network: Network, owner: OwnAddress, asset: string, { address, tag }: ChainTransfer): Promise<{ id: string } | undefined> {
  if (tag === undefined || tag === null) {
    const place = [owner.sub_account_id, asset]
    const known = await tx.one<{ id: string }>('select id from wallets where sub_account_id = $1 and asset = $2', place)
    if (known || asset !== network.native_asset || traitsOf(network).deposits !== 'spendable') return known
    // Its address was handed out, so there was a wallet, and an older database has forgotten it: its coins need one.
    return tx.one<{ id: string }>(
      'insert into wallets (sub_account_id, asset, workspace_id, network) values ($1, $2, $3, $4) returning id',
      [...place, owner.workspace_id, network.code])
  }
  return tx.one<{ id: string }>('select wallet_id id from wallet_addresses where network = $1 and address = $2 and address_tag = $3', [network.code, address, tag])
}

/** Writes a deposit as detected; one that a reorganisation took back comes to life again. */
export async function recordDeposit(services: Services, tx: Queryable, network: Network, block: ChainBlock, { transfer, owner }: { transfer: ChainTransfer; owner: OwnAddress }): Promise<void> {
  const asset = services.registry.asset(transfer.asset)
  if (!asset) return
  const existing = await tx.one<{ transaction_id: string; block_hash: string | null }>(
    'select transaction_id, block_hash from deposits where network = $1 and txid = $2 and position = $3', [network.code, transfer.txid, transfer.position])
  if (existing) {
    if (existing.block_hash === block.hash) return
    await tx.query('update deposits set block_height = $2, block_hash = $3, address = $4 where transaction_id = $1', [existing.transaction_id, block.height, block.hash, transfer.address])
    await tx.query(
      `update transactions set state = 'CONFIRMING', status = 'pending', failure_reason = null, amount = $2, updated_at = now() where id = $1 and state in ('REORGED', 'CONFIRMING')`,
      [existing.transaction_id, transfer.amount.toString()])
  } else {
    const tank = owner.kind === 'tank'
    // Senders also write the digits of a tag as a memo text.
    if (transfer.tag) transfer.tag = transfer.tag.replace(/^text:(?=\d+$)/, '')
    const wallet = tank ? undefined : await walletOf(tx, network, owner, asset.asset_name, transfer)
    const id = services.environment.uuid()
    const [row] = await tx.query<TransactionRow>(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee_asset, source_type, source_id, destination_type, destination_id, state, status, hash, confirmations, address_tag)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'EXTERNAL', $10, $11, $12, 'CONFIRMING', 'pending', $13, 1, $14) returning *`,
      [id, tank ? 'TANK_DEPOSIT' : 'DEPOSIT', owner.workspace_id, owner.sub_account_id, wallet?.id ?? null, asset.asset_name, network.code, transfer.amount.toString(), asset.fee_asset,
        transfer.sender, tank ? 'GAS_TANK' : 'INTERNAL', transfer.address, transfer.txid, transfer.tag ?? null])
    await tx.query(
      'insert into deposits (transaction_id, network, txid, position, address, sender, block_height, block_hash, coinbase) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)',
      [id, network.code, transfer.txid, transfer.position, transfer.address, transfer.sender, block.height, block.hash, transfer.coinbase])
    if (!tank && row) await emit(tx, owner.workspace_id, owner.sub_account_id, 'deposit.detected', stringifyJson(presentTransaction(row, services.registry)))
  }
  if (traitsOf(network).deposits === 'spendable') {
    const wallet = await tx.one<{ id: string }>('select id from wallets where sub_account_id = $1 and asset = $2', [owner.sub_account_id, asset.asset_name])
    if (!wallet) return
    await tx.query(
      `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin, spendable, block_height) values ($1, $2, $3, $4, $5, $6, $7, 'deposit', false, $8)
       on conflict (network, txid, vout) do update set block_height = excluded.block_height`,
      [network.code, transfer.txid, transfer.position, transfer.address, wallet.id, transfer.amount.toString(), owner.path_index, block.height])
  }
}
