import type { Asset, Registry } from '@custody/chains'
import { z } from 'zod'
import { INT_MAX } from '../../core/bounds.ts'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Coins } from '../../core/engine/chain.ts'
import { wakeBuilding } from '../../core/engine/lease.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { lockCoins } from '../../core/engine/wallet-lock.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import {
  CHANGES_NOTHING,
  changesSomething,
  clearable,
  text,
  textSchema,
} from '../../core/http/schemas.ts'
import { coinShape, coinsSql, EXAMPLE_COIN, LABEL_MAX, presentCoin, type CoinRow } from './coin.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

const COIN_ID = /^(\w{1,50})-([0-9a-f]{64})-(0|[1-9]\d{0,9})$/

/** A coin's network and output, as its id states them. */
interface Outpoint {
  asset: Asset
  coins: Coins
  network: string
  txid: string
  vout: string
}

/** Sets the label of a coin, and whether transfers may spend it. */
export const updateCoin = endpoint({
  id: 'updateCoin',
  tag: 'Wallets',
  description:
    'Sets the label of a coin, and freezes or unfreezes it. The platform chooses no frozen coin for a transfer, a replacement or a forward; it stays part of `balance`, but not of `max_spendable`. Freezing is a setting of the platform: the signer nodes do not know it. A coin that a pending transfer spends cannot be frozen. Unfreezing it makes it available at once, and transfers that wait for coins continue.',
  errors: ['NOT_FOUND', 'COIN_RESERVED'],
  example: { label: 'From the sale of 2025', frozen: true },
  method: 'POST',
  path: '/dac/v1/coins/{id}',
  summary: 'Label, freeze or unfreeze a coin',
  access: 'write',
  audit: 'entry',
  params: z.object({
    id: z.string().meta({
      minLength: 1,
      maxLength: 200,
      description: '`id` of the coin',
      examples: [EXAMPLE_COIN],
    }),
  }),
  body: z
    .strictObject({
      label: clearable(
        text(LABEL_MAX).meta({
          ...textSchema(LABEL_MAX),
          description: 'A text of your own; null removes it',
        }),
      ),
      frozen: z
        .boolean()
        .optional()
        .meta({ description: 'Whether transfers must not spend the coin' }),
    })
    .refine(changesSomething, CHANGES_NOTHING)
    .meta({ minProperties: 1 }),
  response: coinShape,
  async handler({ caller, params, body }, services: Services) {
    const outpoint = readId(services, params.id)
    const row = await services.database.transaction(async (tx) => {
      const wallet = await walletOf(tx, caller, outpoint)
      // Coins are chosen under the same lock, so that none is frozen while it is chosen.
      await lockCoins(tx, wallet)
      const coin = await readCoin(tx, caller, wallet, outpoint)
      if (body.frozen === true && !coin.frozen && coin.state === 'reserved')
        throw new ApiError(
          'COIN_RESERVED',
          `frozen: transfer ${coin.transfer} spends the coin; cancel it, or wait until it ends`,
          { field: 'frozen' },
        )
      await tx.query(
        `insert into coin_settings as s (workspace_id, network, txid, vout, label, frozen, updated_at)
         values ($1, $2, $3, $4, $5, coalesce($6, false), $7)
         on conflict (workspace_id, network, txid, vout) do update set
           label = case when $8 then excluded.label else s.label end,
           frozen = coalesce($6, s.frozen), updated_at = excluded.updated_at`,
        [
          caller.workspaceId,
          outpoint.network,
          outpoint.txid,
          outpoint.vout,
          body.label ?? null,
          body.frozen ?? null,
          tx.now(),
          body.label !== undefined,
        ],
      )
      if (body.frozen === false && coin.frozen) await wakeBuilding(tx, caller.workspaceId, wallet)
      return readCoin(tx, caller, wallet, outpoint)
    })
    return { body: presentCoin(row, outpoint.asset) }
  },
})

const missing = () =>
  new ApiError('NOT_FOUND', 'id: the sub-account has no unspent coin with this id', { field: 'id' })

/** @throws ApiError `NOT_FOUND` if the id is of no network with coins */
function readId({ registry, networks }: Services, id: string): Outpoint {
  const [, network = '', txid = '', vout = ''] = COIN_ID.exec(id) ?? []
  const chain = networks.has(network) ? networks.get(network) : null
  const asset = chain && registry.asset(chain.network.native_asset)
  if (!chain?.coins || !asset || Number(vout) > INT_MAX) throw missing()
  return { asset, coins: chain.coins, network, txid, vout }
}

/**
 * Returns the id of the sub-account's wallet to which a coin can belong.
 * @throws ApiError `NOT_FOUND`
 */
async function walletOf(tx: Queryable, caller: Caller, { asset }: Outpoint): Promise<string> {
  const wallet = await tx.one<{ id: string }>(
    'select id from wallets where workspace_id = $1 and sub_account_id = $2 and asset = $3',
    [caller.workspaceId, caller.subAccountId, asset.asset_name],
  )
  if (!wallet) throw missing()
  return wallet.id
}

/**
 * Reads an unspent coin of a wallet.
 * @throws ApiError `NOT_FOUND`, also if the coin is another sub-account's or workspace's: everyone can
 *   read a coin on its chain, so that another answer would tell whose it is
 */
async function readCoin(
  tx: Queryable,
  { workspaceId, subAccountId }: Caller,
  wallet: string,
  { coins, network, txid, vout }: Outpoint,
): Promise<CoinRow> {
  const row = await tx.one<CoinRow>(
    coinsSql(coins.choosable, 'u.network = $6 and u.txid = $7 and u.vout = $8'),
    [workspaceId, wallet, subAccountId, 1, null, network, txid, vout],
  )
  if (!row) throw missing()
  return row
}
