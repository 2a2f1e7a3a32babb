import { formatAmount, type Asset, type Network, type Registry } from '@custody/chains'
import { findAsset, findOpenAsset } from '../../custody/assets/find-asset.ts'
import { findWallet } from '../../custody/assets/find-wallet.ts'
import { readAmount } from '../../custody/assets/read-amount.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import { OFFERS_MAX, type InvoiceBody } from './body.ts'
import {
  amountFor,
  currentRate,
  FIATS,
  leastOf,
  readFiat,
  valueOfCoin,
  valueOfFiat,
  type Rate,
  type Value,
} from './quote.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  database: Database
  registry: Registry
  networks: Networks
  prices: Prices
}

/**
 * The amount that an invoice requests. `fiat` in millionths; null: an amount of an asset was
 * requested.
 */
export interface RequestedAmount {
  fiat: { currency: (typeof FIATS)[number]; amount: bigint } | null
  /** Value of the requested amount; null: the requested asset has no current price. */
  value: Value | null
  asset: Asset | null
  amount: bigint
}

/** One of the assets in which the invoice can be paid: its amount in the smallest unit. */
export interface Offered {
  asset: Asset
  network: Network
  amount: bigint
  rate: Rate | null
}

const invalid = (field: string, reason: string) =>
  new ApiError('INVALID_REQUEST', `${field}: ${reason}`, { field })
const unpriced = (asset: Asset, field: string) =>
  new ApiError(
    'PRICE_UNAVAILABLE',
    `${field}: there is no current price of ${asset.asset_name}, and stale prices are not used; try again`,
    { field, details: { asset: asset.asset_name } },
  )

/** Returns the requested amount: in a currency, or in an asset. */
export function requestedAmount(
  services: Pick<Services, 'registry' | 'networks' | 'prices'>,
  body: InvoiceBody,
): RequestedAmount {
  if (body.fiat_amount !== undefined || body.fiat !== undefined) {
    if (body.fiat === undefined)
      throw invalid(
        'fiat',
        `is required together with fiat_amount; prices are available in ${FIATS.join(', ')}`,
      )
    if (body.fiat_amount === undefined)
      throw invalid('fiat_amount', 'is required together with fiat')
    for (const field of ['asset', 'amount'] as const) {
      if (body[field] !== undefined)
        throw invalid(field, 'send either fiat and fiat_amount, or asset and amount')
    }
    const amount = readFiat(body.fiat_amount)
    return {
      fiat: { currency: body.fiat, amount },
      value: valueOfFiat(amount),
      asset: null,
      amount,
    }
  }
  if (body.asset === undefined)
    throw invalid('fiat', 'send fiat and fiat_amount, or asset and amount')
  if (body.amount === undefined) throw invalid('amount', 'is required together with asset')
  const { asset } = findAsset(services, body.asset)
  const amount = readAmount(body.amount, asset, 'amount')
  if (amount === 0n)
    throw new ApiError('INVALID_AMOUNT', 'amount: must be greater than zero', { field: 'amount' })
  const rate = currentRate(services, asset)
  return { fiat: null, value: rate && valueOfCoin(amount, asset, rate), asset, amount }
}

/**
 * Returns the assets in which an invoice can be paid, each at its current price. Assets that the
 * caller named must be possible; of the sub-account's own wallets, those that are not possible are
 * left out.
 * @throws ApiError that names the asset
 */
export async function offersOf(
  services: Services,
  caller: Caller,
  body: InvoiceBody,
  request: RequestedAmount,
): Promise<Offered[]> {
  const named = body.assets ?? (request.asset ? [request.asset.asset_name] : undefined)
  if (named) {
    const field = body.assets ? 'assets' : 'asset'
    if (new Set(named).size !== named.length) throw invalid(field, 'contains an asset twice')
    return Promise.all(
      named.map(async (name) => {
        const match = findOpenAsset(services, name, field)
        const wallet = await nameField(() => findWallet(services.database, caller, name), field)
        if (wallet.status !== 'active') {
          throw new ApiError(
            'WALLET_INACTIVE',
            `${field}: the ${name} wallet is inactive; no address can be created for it`,
            { field },
          )
        }
        return offered(services, match, request, field)
      }),
    )
  }
  const wallets = await services.database.query<{ asset: string }>(
    `select asset from wallets where workspace_id = $2 and sub_account_id = $1 and status = 'active'
     order by created_at, id limit 1000`,
    [caller.subAccountId, caller.workspaceId],
  )
  let problem: ApiError | null = null
  const possible = wallets.flatMap(({ asset }) => {
    try {
      return [offered(services, findOpenAsset(services, asset, 'assets'), request, 'assets')]
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      problem ??= error
      return []
    }
  })
  if (possible.length > 0) return possible.slice(0, OFFERS_MAX)
  const none =
    'assets: this sub-account has no active wallet; create one with POST /dac/v1/create-wallet'
  throw problem ?? new ApiError('WALLET_MISSING', none, { field: 'assets' })
}

/** Runs a check and reports its error for the field in which the asset was named. */
async function nameField<T>(find: () => Promise<T>, field: string): Promise<T> {
  try {
    return await find()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(error.code, error.message.replace(/^asset:/, `${field}:`), { field })
  }
}

function offered(
  services: Services,
  { asset, network }: { asset: Asset; network: Network },
  request: RequestedAmount,
  field: string,
): Offered {
  const rate = currentRate(services, asset)
  const isAsked = request.asset?.asset_name === asset.asset_name
  if (!isAsked && rate === null) throw unpriced(asset, field)
  if (!isAsked && request.value === null) throw unpriced(request.asset as Asset, 'asset')
  const amount = isAsked
    ? request.amount
    : amountFor(request.value as Value, (rate as Rate).price, asset.decimals)
  const least = leastOf(asset)
  const amountField = request.fiat ? 'fiat_amount' : 'amount'
  if (amount < least) {
    throw new ApiError(
      'INVALID_AMOUNT',
      `${amountField}: is ${formatAmount(amount, asset.decimals)} ${asset.asset_name}; the minimum is ${asset.min_withdrawal}`,
      { field: amountField },
    )
  }
  return { asset, network, amount, rate }
}
