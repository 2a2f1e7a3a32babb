import type { Asset, Registry } from '@custody/chains'
import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import type { Coins } from '../../core/engine/chain.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, integer, LIMIT_MAX, oneOf } from '../../core/http/schemas.ts'
import { pageFieldsLike } from '../../core/time-cursor.ts'
import { findAsset } from '../assets/find-asset.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { COIN_STATES, coinShape, coinsSql, presentCoin, type CoinRow } from './coin.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

const CURSOR = /^(\d{1,78})\.([0-9a-f]{1,128})\.(\d{1,10})$/
const CURSOR_MAX = 220
const EXAMPLE = '25000000.5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8.1'

/** Condition on `u`: the coins after the cursor. $6 to $8: its value, hash and index, or null. */
const FOLLOWS = `($6::numeric is null or (u.value <= $6 and (u.value < $6
  or (u.txid, u.vout::bigint) > ($7::text, $8::bigint))))`

/** Lists the unspent coins of a wallet, the largest first. */
export const listCoins = endpoint({
  id: 'listCoins',
  tag: 'Wallets',
  description:
    'Returns the unspent outputs of which a wallet consists, with their states, on networks that have them (BTC, LTC, DASH, DOGE, BCH, ADA). The largest first; to continue, pass `next` of the response as `after`. A coin that a pending transfer spends is included as `reserved` until the transfer ends.',
  errors: ['UNSUPPORTED_ASSET', 'WALLET_MISSING'],
  method: 'GET',
  path: '/dac/v1/coins',
  summary: 'List the coins of a wallet',
  access: 'read',
  query: z.strictObject({
    asset: assetName,
    state: oneOf(COIN_STATES, 'Returns only coins in this state').optional(),
    after: z
      .string()
      .max(CURSOR_MAX)
      .regex(CURSOR, 'must be `next` of an earlier response')
      .optional()
      .meta({
        description: '`next` of an earlier response: returns the coins that follow',
        examples: [EXAMPLE],
      }),
    limit: integer(1, LIMIT_MAX, 'Maximum number of coins in the response; by default 100').default(
      100,
    ),
  }),
  response: z.object({
    data: z.array(coinShape).max(LIMIT_MAX),
    ...pageFieldsLike(EXAMPLE),
  }),
  async handler({ caller, query: { asset: ticker, state, after, limit } }, services: Services) {
    const { asset, coins } = coinsOf(services, ticker)
    const wallet = await findWallet(services.database, caller, asset.asset_name)
    const [, value = null, hash = null, index = null] =
      (after === undefined ? null : CURSOR.exec(after)) ?? []
    const read = await services.database.query<CoinRow>(coinsSql(coins.choosable, FOLLOWS), [
      caller.workspaceId,
      wallet.id,
      caller.subAccountId,
      limit + 1,
      state ?? null,
      value,
      hash,
      index,
    ])
    const rows = read.slice(0, limit)
    const last = read.length > limit ? rows.at(-1) : undefined
    return {
      body: {
        data: rows.map((row) => presentCoin(row, asset)),
        next: last === undefined ? null : `${last.value}.${last.txid}.${last.vout}`,
        has_more: last !== undefined,
      },
    }
  },
})

/**
 * Returns the asset of a ticker, and its network's operations with coins.
 * @throws ApiError `UNSUPPORTED_ASSET`; `INVALID_REQUEST` if its wallets have no coins
 */
function coinsOf(
  services: Pick<Services, 'registry' | 'networks'>,
  ticker: string,
): { asset: Asset; coins: Coins } {
  const { asset, network } = findAsset(services, ticker)
  const { coins } = services.networks.get(network.code)
  if (!coins)
    throw new ApiError(
      'INVALID_REQUEST',
      `asset: a wallet of ${asset.asset_name} has a balance instead of coins`,
      { field: 'asset' },
    )
  return { asset, coins }
}
