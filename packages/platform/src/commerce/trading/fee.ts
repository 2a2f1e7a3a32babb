import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import { ApiError } from '../../core/errors.ts'
import { worthOf } from '../exchanges/balances.ts'
import { times } from '../exchanges/units.ts'
import type { Market } from '../exchanges/venue.ts'
import {
  exhausted,
  tierOfWorkspace,
  utcDay,
  type FeeQuote,
} from '../../custody/prepaid-fee/fees.ts'
import { feeOf, tierNamed } from '../../core/settings/tiers.ts'
import type { OrderRow } from './order.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers'>
  environment: Environment
  database: Database
  prices: Prices
}

const referenceOf = (id: string): string => `order:${id}`

/**
 * Returns the prepaid fee of an order that is filled completely, by its value at the current price.
 * @throws ApiError `PRICE_UNAVAILABLE` if the fee depends on an unknown price
 */
export async function quoteOrderFee(
  services: Pick<Services, 'settings' | 'database' | 'prices'>,
  workspaceId: string,
  market: Market,
  { amount, price }: { amount: bigint; price: bigint },
): Promise<FeeQuote> {
  const tier = tierNamed(
    services.settings.prepaidTiers,
    await tierOfWorkspace(services.database, workspaceId),
  )
  const amountUsd =
    worthOf(services, market.quote, times(amount, price)) ?? worthOf(services, market.base, amount)
  if (amountUsd !== null) return { amountUsd, fee: feeOf(tier, amountUsd), least: tier.least }
  if (tier.basisPoints === 0n) return { amountUsd, fee: tier.least, least: tier.least }
  throw new ApiError(
    'PRICE_UNAVAILABLE',
    `market: there is no current USD price of ${market.base} or ${market.quote}, so the platform fee is unknown; nothing was created, try again`,
    { field: 'market' },
  )
}

/**
 * Reserves an order's fee. Must be the last lock of its transaction.
 * @throws ApiError `PREPAID_FEE_EXHAUSTED`
 */
export async function reserveOrderFee(
  tx: Queryable,
  workspaceId: string,
  orderId: string,
  { fee, least }: FeeQuote,
): Promise<void> {
  try {
    await tx.query('select prepaid_reserve($1, $2, $3, $4)', [
      workspaceId,
      referenceOf(orderId),
      fee.toString(),
      least.toString(),
    ])
  } catch (error) {
    throw exhausted(error, fee) ?? error
  }
}

/**
 * Charges the fee for the filled part, rounded up, and releases the rest.
 * @returns the charged amount in millionths of a USD
 */
export async function settleOrderFee(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  row: OrderRow,
  filled: bigint,
): Promise<bigint> {
  const amount = BigInt(row.amount)
  const done = filled > amount ? amount : filled
  const charged = (BigInt(row.platform_fee) * done + amount - 1n) / amount
  const volume = (BigInt(row.amount_usd ?? '0') * done) / amount
  await tx.query('select order_fee_settle($1, $2, $3, $4, $5)', [
    row.workspace_id,
    row.id,
    charged.toString(),
    volume.toString(),
    utcDay(services),
  ])
  return charged
}
