import { cardano, pathOf, type Network, type UtxoTokens } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import type { Owner } from '../../engine/chain.ts'
import { MAY_BE_CHOSEN } from '../coins/choosable.ts'

const COINS_MAX = 2000

interface CoinRow {
  txid: string
  vout: number
  value: string
  path_index: number
  address: string
  riders: UtxoTokens | null
}

const COLUMNS = 'txid, vout, value::text, path_index, address, riders'

/**
 * SQL condition on `utxos u`: the coin may be chosen. Change only counts once it is in a block: the
 * transaction that creates the change may expire at its slot, which would invalidate everything
 * built on it.
 */
export const CARDANO_MAY_BE_CHOSEN = `${MAY_BE_CHOSEN} and u.block_height is not null`

/** Returns the coins that a wallet may spend now. */
export async function cardanoCoins(
  database: Queryable,
  walletId: string,
  network: Network,
  owner: Owner,
): Promise<cardano.Coin[]> {
  const rows = await database.query<CoinRow>(
    `select ${COLUMNS} from utxos u
     where workspace_id = $2 and wallet_id = $1 and ${CARDANO_MAY_BE_CHOSEN}
     order by riders is not null, value desc limit ${COINS_MAX}`,
    [walletId, owner.workspaceId],
  )
  return rows.map((row) => coinOf(row, network, owner.subAccountIndex))
}

/**
 * Returns the largest coins of lovelace alone that a wallet may spend now, as many as one transaction can
 * spend. In the order of an index, so that the size of the wallet does not matter.
 */
export async function largestCoins(
  database: Queryable,
  walletId: string,
  network: Network,
  owner: Owner,
): Promise<cardano.Coin[]> {
  const rows = await database.query<CoinRow>(
    `select ${COLUMNS} from utxos u
     where workspace_id = $2 and wallet_id = $1 and ${CARDANO_MAY_BE_CHOSEN} and riders is null
     order by value desc, txid, vout limit ${cardano.INPUTS_MAX}`,
    [walletId, owner.workspaceId],
  )
  return rows.map((row) => coinOf(row, network, owner.subAccountIndex))
}

/**
 * Returns the coins that a transfer's expired transactions spent. `gone`: some of them are no
 * longer unspent on the chain.
 */
export async function coinsOfDead(
  database: Queryable,
  transactionId: string,
  network: Network,
  owner: Owner,
): Promise<{ coins: cardano.Coin[]; gone: boolean }> {
  const rows = await database.query<CoinRow & { stands: boolean }>(
    `select ${COLUMNS}, spendable and block_height is not null stands from utxos
       where workspace_id = $2 and spent_by in (
       select id from chain_transactions where workspace_id = $2 and transaction_id = $1
         and state = 'EXPIRED')
     order by txid, vout`,
    [transactionId, owner.workspaceId],
  )
  const standing = rows.filter(({ stands }) => stands)
  return {
    coins: standing.map((row) => coinOf(row, network, owner.subAccountIndex)),
    gone: standing.length < rows.length,
  }
}

function coinOf(row: CoinRow, network: Network, subAccountIndex: number): cardano.Coin {
  return {
    txid: row.txid,
    vout: row.vout,
    value: BigInt(row.value),
    path: pathOf(network, subAccountIndex, row.path_index),
    address: row.address,
    riders: row.riders,
  }
}
