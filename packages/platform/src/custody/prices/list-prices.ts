import { formatAmount, type Registry } from '@custody/chains'
import { z } from 'zod'
import { findAsset, listAssets } from '../assets/find-asset.ts'
import { ASSETS_MAX as REGISTRY_MAX, EXCHANGES_MAX, WORD_MAX } from '../../core/bounds.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import { coinOf } from './coins.ts'
import { PRICE_DECIMALS } from './decimals.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Prices } from './prices.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  registry: Registry
  networks: Networks
  prices: Prices
}

const ASSETS_MAX = 100
const NAME_MAX = 64
const NAMES = String.raw`^[^,\s]{1,${NAME_MAX}}(,[^,\s]{1,${NAME_MAX}}){0,${ASSETS_MAX - 1}}$`
/** Maximum number of sources of a price: CoinGecko and the exchanges of CUSTODY_PRICE_EXCHANGES. */
const SOURCES_MAX = 1 + EXCHANGES_MAX

const priceShape = z
  .object({
    asset: z.string().max(WORD_MAX),
    price_usd: z.number().min(0),
    sources: z.array(z.string().max(WORD_MAX)).max(SOURCES_MAX),
    updated_at: z.string(),
    stale: z.boolean(),
  })
  .meta({ id: 'Price' })

/** Lists current prices in USD. A token has the price of its coin on every network. */
export const listPrices = endpoint({
  id: 'listPrices',
  tag: 'Prices',
  description:
    'Returns the median of the sources that responded, with their number and age. `stale` is true if the price is too old for charging fees.',
  errors: ['UNSUPPORTED_ASSET', 'PRICE_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/prices',
  summary: 'Read current prices in USD',
  access: 'read',
  query: z.strictObject({
    assets: z.string().max(4000).meta({ pattern: NAMES }).optional().meta({
      description: 'Asset names, comma-separated; by default every asset that has a price',
    }),
  }),
  response: z.array(priceShape).max(REGISTRY_MAX),
  async handler({ query }, services: Services) {
    const named =
      query.assets === undefined
        ? null
        : [...new Set(query.assets.split(',').map((name) => name.trim()))]
    if (
      named &&
      (named.length > ASSETS_MAX || named.some((name) => name === '' || name.length > NAME_MAX))
    ) {
      throw new ApiError(
        'INVALID_REQUEST',
        `assets: must be 1 to ${ASSETS_MAX} asset names of at most ${NAME_MAX} characters, comma-separated`,
        { field: 'assets' },
      )
    }
    const assets = named
      ? named.map((name) => withPriceError(name, () => findAsset(services, name, 'assets').asset))
      : listAssets(services)
    return {
      body: assets.flatMap((asset) => {
        const price = services.prices.price(coinOf(asset))
        if (!price) {
          if (!named) return []
          throw new ApiError(
            'PRICE_UNAVAILABLE',
            `assets: no source has a price of ${asset.asset_name}`,
            { field: 'assets' },
          )
        }
        return [
          {
            asset: asset.asset_name,
            price_usd: exact(formatAmount(price.price, PRICE_DECIMALS)),
            sources: price.sources,
            updated_at: new Date(price.at).toISOString(),
            stale: price.stale,
          },
        ]
      }),
    }
  },
})

function withPriceError<T>(name: string, find: () => T): T {
  try {
    return find()
  } catch (error) {
    if (error instanceof ApiError)
      throw new ApiError(error.code, error.message, { field: 'assets', details: { asset: name } })
    throw error
  }
}
