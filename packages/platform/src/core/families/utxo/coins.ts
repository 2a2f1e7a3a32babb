import { pathOf, utxo, type Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import type { Owner } from '../../engine/chain.ts'
import { MAY_BE_CHOSEN } from '../coins/choosable.ts'

/** Maximum number of coins that are considered for one transfer. */
const COINS_MAX = 2000

interface CoinRow {
  txid: string
  vout: number
  value: string
  path_index: number
  address: string
}
const COLUMNS = 'txid, vout, value::text, path_index, address'

/**
 * Returns the coins that a wallet may spend now. Its own unconfirmed change is included, but comes
 * last.
 */
export async function spendableCoins(
  database: Queryable,
  walletId: string,
  network: Network,
  owner: Owner,
): Promise<utxo.Utxo[]> {
  const rows = await database.query<CoinRow>(
    `select ${COLUMNS} from utxos u where workspace_id = $2 and wallet_id = $1 and ${MAY_BE_CHOSEN}
     order by (origin = 'change' and block_height is null), value desc limit ${COINS_MAX}`,
    [walletId, owner.workspaceId],
  )
  return rows.map((row) => coinOf(row, network, owner))
}

/**
 * Returns the largest coins that a wallet may spend now, as many as one transaction can spend. In the
 * order of an index, so that the size of the wallet does not matter.
 */
export async function largestCoins(
  database: Queryable,
  walletId: string,
  network: Network,
  owner: Owner,
): Promise<utxo.Utxo[]> {
  const rows = await database.query<CoinRow>(
    `select ${COLUMNS} from utxos u where workspace_id = $2 and wallet_id = $1 and ${MAY_BE_CHOSEN}
     order by value desc, txid, vout limit ${utxo.INPUTS_MAX}`,
    [walletId, owner.workspaceId],
  )
  return rows.map((row) => coinOf(row, network, owner))
}

/**
 * SQL condition on `utxos u`: the coin may be merged with others. Its block is known, so that no
 * unconfirmed transaction is a parent of the consolidation.
 */
const MAY_BE_MERGED = `${MAY_BE_CHOSEN} and u.block_height is not null`

/**
 * Returns the smallest confirmed coins that a wallet may spend now, from a value on, and the number of all
 * confirmed coins that it may spend.
 * @param limit maximum number of coins
 */
export async function smallestCoins(
  database: Queryable,
  walletId: string,
  network: Network,
  { owner, least, limit }: { owner: Owner; least: bigint; limit: number },
): Promise<{ coins: utxo.Utxo[]; free: number }> {
  // In the opposite order of the index of the largest coins.
  const rows = await database.query<CoinRow>(
    `select ${COLUMNS} from utxos u where workspace_id = $2 and wallet_id = $1 and ${MAY_BE_MERGED}
       and value >= $3 order by value, txid desc, vout desc limit $4`,
    [walletId, owner.workspaceId, least.toString(), limit],
  )
  const all = await database.one<{ free: number }>(
    `select count(*)::integer free from utxos u where workspace_id = $2 and wallet_id = $1
       and ${MAY_BE_MERGED}`,
    [walletId, owner.workspaceId],
  )
  return { coins: rows.map((row) => coinOf(row, network, owner)), free: all?.free ?? 0 }
}

/** Returns all coins that any of these transactions of a transfer spends, each once. */
export async function coinsSpentBy(
  database: Queryable,
  ids: readonly string[],
  network: Network,
  owner: Owner,
): Promise<utxo.Utxo[]> {
  const rows = await database.query<CoinRow>(
    `select ${COLUMNS} from utxos where workspace_id = $3 and network = $1 and spent_by = any($2)
      order by txid, vout`,
    [network.code, ids, owner.workspaceId],
  )
  return rows.map((row) => coinOf(row, network, owner))
}

function coinOf(
  { txid, vout, value, path_index: index, address }: CoinRow,
  network: Network,
  owner: Owner,
): utxo.Utxo {
  return {
    txid,
    vout,
    value: BigInt(value),
    path: pathOf(network, owner.subAccountIndex, index),
    address,
  }
}
