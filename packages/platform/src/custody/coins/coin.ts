import { formatAmount, type Asset } from '@custody/chains'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  HASH_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  UINT_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import { exact } from '../../core/decimals.ts'

/** Maximum length of a coin's label, in characters. */
export const LABEL_MAX = 100
/** Maximum length of a coin's id: network, hash and index. */
const COIN_ID_MAX = 200
const EXAMPLE_HASH = '5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8'
export const EXAMPLE_COIN = `BTC-${EXAMPLE_HASH}-1`

/** Whether a coin can be spent. The first that applies, in this order, is the coin's state. */
export const COIN_STATES = ['reserved', 'frozen', 'available', 'held', 'waiting'] as const
type CoinState = (typeof COIN_STATES)[number]

export const coinShape = z
  .object({
    id: z
      .string()
      .max(COIN_ID_MAX)
      .meta({ description: 'Opaque id of the coin', examples: [EXAMPLE_COIN] }),
    asset: z
      .string()
      .max(WORD_MAX)
      .meta({ examples: ['BTC'] }),
    amount: z.number().meta({ description: 'Amount of the coin', examples: [0.25] }),
    address: z
      .string()
      .max(ADDRESS_MAX)
      .meta({ description: 'Address of the wallet at which the coin is' }),
    hash: z
      .string()
      .max(HASH_MAX)
      .meta({ description: 'Transaction that created the coin', examples: [EXAMPLE_HASH] }),
    index: z
      .int()
      .min(0)
      .max(UINT_MAX)
      .meta({ description: 'Index of the output in its transaction' }),
    height: z
      .int()
      .min(0)
      .nullable()
      .meta({
        description: 'Block of the transaction; null: it is in no block',
        examples: [912345],
      }),
    state: z.enum(COIN_STATES).meta({
      description:
        '`reserved`: a pending transfer spends it. `frozen`: a request has frozen it. `available`: it can be spent. `held`: screening holds its deposit. `waiting`: its deposit is not credited yet, it is change that is not certain yet, or the coin of a consolidation that is not confirmed',
    }),
    frozen: z
      .boolean()
      .meta({ description: 'Whether a request has frozen it, whatever its state' }),
    reason: z
      .string()
      .max(MESSAGE_MAX)
      .nullable()
      .meta({ description: 'Why it cannot be spent, as a sentence that may change; null: it can' }),
    label: z
      .string()
      .max(NAME_MAX)
      .nullable()
      .meta({ examples: ['From the sale of 2025'] }),
  })
  .meta({ id: 'Coin' })

/** A coin as read by {@link coinsSql}. `value`: smallest unit. */
export interface CoinRow {
  network: string
  txid: string
  vout: number
  value: string
  address: string
  block_height: string | null
  origin: 'deposit' | 'change'
  contested: boolean
  label: string | null
  frozen: boolean
  /** The pending transfer that spends it. */
  transfer: string | null
  state: CoinState
}

const COLUMNS = `u.network, u.txid, u.vout, u.value, u.address, u.block_height, u.origin, u.contested,
  s.label, coalesce(s.frozen, false) frozen`
const SETTINGS = `left join coin_settings s on s.workspace_id = u.workspace_id and s.network = u.network
  and s.txid = u.txid and s.vout = u.vout`
const ORDER = 'order by value desc, txid, vout'

/**
 * Returns the SQL of a wallet's unspent coins with their states, the largest first: those that no
 * transaction spends, by an index, and those that pending transfers spend. $1: workspace, $2: wallet,
 * $3: sub-account, $4: maximum number, $5: state, or null for all.
 * @param choosable condition on `u`: the coin may be chosen for a transaction
 * @param selected condition on `u`: the coins to return
 */
export const coinsSql = (choosable: string, selected: string): string =>
  `select network, txid, vout, value::text, address, block_height::text, origin, contested, label,
     frozen, transfer, state
   from (
     (select * from (
        select ${COLUMNS}, null::uuid transfer,
          case when s.frozen then 'frozen' when ${choosable} then 'available'
            when u.origin = 'deposit' and exists (select 1 from deposits d
              join transactions t on t.workspace_id = $1 and t.id = d.transaction_id
              where d.workspace_id = $1 and d.network = u.network and d.txid = u.txid
                and d.position = u.vout and t.state = 'FROZEN') then 'held'
            else 'waiting' end state
        from utxos u ${SETTINGS}
        where u.workspace_id = $1 and u.wallet_id = $2 and u.spent_by is null and ${selected}) free
      where $5::text is null or state = $5 ${ORDER} limit $4)
     union all
     (select ${COLUMNS}, t.id transfer, 'reserved' state
      from transactions t
        join chain_transactions c on c.workspace_id = $1 and c.transaction_id = t.id
        join utxos u on u.workspace_id = $1 and u.spent_by = c.id ${SETTINGS}
      where t.workspace_id = $1 and t.sub_account_id = $3 and t.status = 'pending'
        and u.wallet_id = $2 and ($5::text is null or $5 = 'reserved') and ${selected}
      ${ORDER} limit $4)) coins
   order by coins.value desc, txid, vout limit $4`

/** Converts a coin to its public shape. */
export function presentCoin(row: CoinRow, asset: Asset) {
  return {
    id: `${row.network}-${row.txid}-${row.vout}`,
    asset: asset.asset_name,
    amount: exact(formatAmount(BigInt(row.value), asset.decimals)),
    address: row.address,
    hash: row.txid,
    index: row.vout,
    height: row.block_height === null ? null : Number(row.block_height),
    state: row.state,
    frozen: row.frozen,
    reason: reasonOf(row),
    label: row.label,
  }
}

/** Returns why a coin cannot be spent, or null if it can. */
function reasonOf({ state, transfer, origin, contested }: CoinRow): string | null {
  switch (state) {
    case 'available':
      return null
    case 'reserved':
      return `Transfer ${transfer} spends it.`
    case 'frozen':
      return 'A request has frozen it. No transfer spends it until it is unfrozen.'
    case 'held':
      return 'Screening holds its deposit.'
    case 'waiting':
      if (origin === 'deposit') return 'Its deposit is not credited yet.'
      return contested
        ? 'It is change that may be replaced, or the coin of a consolidation that is not confirmed.'
        : 'It is change of a transaction that is in no block yet.'
  }
}
