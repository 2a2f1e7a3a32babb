import type { Queryable } from '../database/pool.ts'
import type { Services } from '../engine/services.ts'
import { ApiError } from '../errors.ts'
import { worthOf } from '../exchanges/balances.ts'
import { times } from '../exchanges/units.ts'
import type { Market } from '../exchanges/venue.ts'
import { exhausted, tierOfWorkspace, utcDay, type FeeQuote } from '../prepaid-fee/fees.ts'
import { feeOf, tierNamed } from '../settings/tiers.ts'
import type { OrderRow } from './order.ts'

const referenceOf = (id: string): string => `order:${id}`

/**
 * What an order costs on the prepaid fee account if all of it is filled, by its value at the price
 * of now.
 * @throws ApiError `PRICE_UNAVAILABLE` where the fee depends on a price that nobody knows
 */
export async function quoteOrderFee(
  services: Services,
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
 * Holds an order's fee back, as the last thing that its transaction locks. @throws ApiError
 * `PREPAID_FEE_EXHAUSTED`
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
 * Takes the share of what was filled, rounded up, and gives the rest back. @returns what was taken,
 * in millionths of a USD
 */
export async function settleOrderFee(
  services: Services,
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
