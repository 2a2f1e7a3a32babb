import { z } from 'zod'
import { ID_MAX, MESSAGE_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { exact } from '../../core/decimals.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Venues } from '../exchanges/venues.ts'
import { ApiError } from '../../core/errors.ts'
import type { AccountRow } from '../exchanges/account.ts'
import { assertCounted } from '../exchanges/identity.ts'
import { units, unsignedUnits } from '../exchanges/market-data.ts'
import { divide, showUnits } from '../exchanges/units.ts'
import type { Market, Side } from '../exchanges/venue.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { assetName, decimal, positiveSchema, text } from '../../core/http/schemas.ts'
import { convert, type Conversion } from './convert.ts'
import { orderShape, presentOrder, type OrderRow } from './order.ts'
import { readPositive } from './order-params.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  exchanges: Venues
}

/** Lifetime of a quote, in milliseconds. */
const QUOTE_MS = 10_000
/** Number of order book levels that are read. */
const DEPTH = 100
const ACCOUNTS_MAX = 20

/** Result of an account that was not chosen, or why it could not convert. */
interface Other {
  exchange_account: string
  exchange: string
  receive: string | null
  reason: string | null
}

/** A row of `conversions`. */
export interface ConversionRow {
  id: string
  account_id: string
  exchange: string
  market: string
  side: Side
  from_coin: string
  to_coin: string
  given: string
  amount: string
  price: string
  receive: string
  others: Other[]
  expires_at: Date
  order_id: string | null
  payload_hash: string | null
  created_at: Date
  /** The response to the request that ordered the conversion. */
  response: string | null
}

/** A quoted conversion that has not been ordered yet. */
export type NewConversion = Omit<ConversionRow, 'order_id' | 'payload_hash' | 'response'>

export const conversionBody = {
  from_asset: assetName.meta({
    description:
      'A coin of the exchange (BTC, USD), or an asset of this platform, which stands for its coin',
    examples: ['BTC'],
  }),
  to_asset: assetName.meta({ examples: ['USDT'] }),
  amount: decimal.meta(positiveSchema('Exact amount of from_asset')),
  accounts: z
    .array(text(100))
    .min(1, 'must not be empty')
    .max(ACCOUNTS_MAX, `must have at most ${ACCOUNTS_MAX} entries`)
    .optional()
    .meta({ description: 'Ids of exchange accounts; by default all accounts of the sub-account' }),
}
export interface ConversionParams {
  from_asset: string
  to_asset: string
  amount: string
  accounts?: string[] | undefined
}

export const conversionShape = z
  .object({
    id: z.string().max(ID_MAX),
    status: z.enum(['quoted', 'expired', 'ordered']),
    from_asset: z.string().max(WORD_MAX),
    to_asset: z.string().max(WORD_MAX),
    amount: units.meta({ description: 'Amount of from_asset in the request' }),
    receive: units.meta({
      description: 'Amount of to_asset after the exchange’s fee, from the order book at that time',
    }),
    price: unsignedUnits.nullable(),
    exchange_account: z.string().max(ID_MAX),
    exchange: z.string().max(WORD_MAX),
    market: z.string().max(WORD_MAX),
    side: z.enum(['buy', 'sell']),
    order_amount: units,
    limit_price: unsignedUnits.meta({ description: 'No part is executed at a worse price' }),
    expires_at: z.string(),
    others: z
      .array(
        z.object({
          exchange_account: z.string().max(ID_MAX),
          exchange: z.string().max(WORD_MAX),
          receive: units.nullable(),
          reason: z.string().max(MESSAGE_MAX).nullable(),
        }),
      )
      .max(ACCOUNTS_MAX)
      .meta({ description: 'What the other accounts would return, or why they cannot convert' }),
    order: orderShape.nullable(),
    created_at: z.string(),
  })
  .meta({ id: 'Conversion' })

/**
 * Returns the API's representation.
 * @param order the order that the conversion became
 */
export function presentConversion(row: NewConversion, order: OrderRow | null, now: number) {
  const show = (amount: string) => exact(showUnits(BigInt(amount)))
  return {
    id: row.id,
    status: order
      ? ('ordered' as const)
      : row.expires_at.getTime() <= now
        ? ('expired' as const)
        : ('quoted' as const),
    from_asset: row.from_coin,
    to_asset: row.to_coin,
    amount: show(row.given),
    receive: show(row.receive),
    price: exact(showUnits(divide(BigInt(row.receive), BigInt(row.given)))),
    exchange_account: row.account_id,
    exchange: row.exchange,
    market: row.market,
    side: row.side,
    order_amount: show(row.amount),
    limit_price: show(row.price),
    expires_at: row.expires_at.toISOString(),
    others: row.others.map(({ receive, ...other }) => ({
      ...other,
      receive: receive === null ? null : show(receive),
    })),
    order: order && presentOrder(order),
    created_at: row.created_at.toISOString(),
  }
}

/** Returns the coin for the name of an asset of this platform, or for its own name. */
const coinOf = ({ registry }: Services, name: string): string =>
  registry.asset(name)?.ticker ?? name.toUpperCase()

const wrong = (field: string, why: string) =>
  new ApiError('INVALID_REQUEST', `${field}: ${why}`, { field })

/** Returns the market of two coins, and the side of an order that converts one into the other. */
function marketOf(
  markets: ReadonlyMap<string, Market>,
  from: string,
  to: string,
): { market: Market; side: Side } | null {
  const [sells, buys] = [markets.get(`${from}/${to}`), markets.get(`${to}/${from}`)]
  if (sells?.active) return { market: sells, side: 'sell' }
  return buys?.active ? { market: buys, side: 'buy' } : null
}

interface Offer {
  account: AccountRow
  market: Market
  conversion: Conversion
}

/** Returns the result of one account, or why it cannot convert. */
async function offerOf(
  services: Services,
  account: AccountRow,
  from: string,
  to: string,
  input: bigint,
): Promise<Offer | string> {
  const { exchange } = account
  if (account.status === 'failing') return `${exchange} rejects its key`
  try {
    const { orders, timesInForce } = await services.exchanges.traits(exchange)
    if (orders === 'none' || !timesInForce.includes('IOC'))
      return `${exchange} does not accept such orders from this platform`
    const place = marketOf(await services.exchanges.markets(exchange), from, to)
    if (!place) return `${exchange} has no market of ${from} and ${to}`
    const held = await services.database.one<{ available: string }>(
      'select available::text from exchange_balances where account_id = $1 and coin = $2',
      [account.id, from],
    )
    if (BigInt(held?.available ?? '0') < input)
      return `has ${showUnits(BigInt(held?.available ?? '0'))} ${from}`
    const book = await services.exchanges.orderBook(exchange, place.market.symbol, DEPTH)
    const conversion = convert(place.market, book, place.side, input)
    return typeof conversion === 'string'
      ? conversion
      : { account, market: place.market, conversion }
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 200) : `${exchange} cannot be queried`
  }
}

/**
 * Returns the best result of all accounts.
 * @throws ApiError `INVALID_REQUEST`, `INVALID_AMOUNT`, `NOT_FOUND` (an account),
 *   `CONVERSION_UNAVAILABLE` with the reason of each account
 */
export async function bestConversion(
  services: Services,
  caller: Caller,
  wanted: ConversionParams,
): Promise<NewConversion> {
  const [from, to] = [coinOf(services, wanted.from_asset), coinOf(services, wanted.to_asset)]
  if (from === to) throw wrong('to_asset', `must differ from from_asset; both are ${to}`)
  const input = readPositive(wanted.amount, 'amount')
  const all = await services.database.query<AccountRow>(
    `select * from exchange_accounts where sub_account_id = $1 and status <> 'deleted'
      order by created_at, id limit ${ACCOUNTS_MAX}`,
    [caller.subAccountId],
  )
  const ids = wanted.accounts?.map((id) => id.toLowerCase())
  const unknown = ids?.find((id) => all.every((each) => each.id !== id))
  if (unknown !== undefined) {
    const reason = `accounts: exchange account ${unknown.slice(0, 100)} does not exist in this sub-account`
    throw new ApiError('NOT_FOUND', reason, { field: 'accounts' })
  }
  const accounts = all.filter(({ id, identity }) =>
    ids === undefined ? identity !== 'duplicate' : ids.includes(id),
  )
  for (const each of accounts) assertCounted(each, 'accounts')
  if (accounts.length === 0)
    throw wrong(
      'accounts',
      'no exchange account is linked; link one with POST /dac/v1/exchange-accounts',
    )
  const answers = await Promise.all(
    accounts.map(async (account) => ({
      account,
      offer: await offerOf(services, account, from, to, input),
    })),
  )
  const offers = answers.flatMap(({ offer }) => (typeof offer === 'string' ? [] : [offer]))
  const [best] = offers.toSorted((a, b) => (a.conversion.receive > b.conversion.receive ? -1 : 1))
  if (!best) {
    const why = answers
      .map(({ account, offer }) => `${account.label} (${account.exchange}): ${String(offer)}`)
      .join('; ')
    const reason = `amount: no account can convert ${showUnits(input)} ${from} to ${to}: ${why}`
    throw new ApiError('CONVERSION_UNAVAILABLE', reason, { field: 'amount' })
  }
  const { account, market, conversion } = best
  const now = services.environment.now()
  const others = answers
    .filter((each) => each.account.id !== account.id)
    .map(({ account: { id, exchange }, offer }): Other => ({
      exchange_account: id,
      exchange,
      receive: typeof offer === 'string' ? null : offer.conversion.receive.toString(),
      reason: typeof offer === 'string' ? offer : null,
    }))
  return {
    id: services.environment.uuid(),
    account_id: account.id,
    exchange: account.exchange,
    market: market.symbol,
    side: conversion.side,
    from_coin: from,
    to_coin: to,
    given: input.toString(),
    amount: conversion.amount.toString(),
    price: conversion.price.toString(),
    receive: conversion.receive.toString(),
    others,
    expires_at: new Date(now + QUOTE_MS),
    created_at: new Date(now),
  }
}

/**
 * Stores a conversion.
 * @param o the order that it became, and the caller's idempotency key
 */
export async function insertConversion(
  tx: Queryable,
  caller: Caller,
  row: NewConversion,
  o: { orderId: string; sequenceId: string | null; payloadHash: string; response: string } | null,
): Promise<void> {
  await tx.query(
    `insert into conversions (id, workspace_id, sub_account_id, account_id, exchange, market, side,
       from_coin, to_coin, given, amount,
       price, receive, others, expires_at, created_at, order_id, sequence_id, payload_hash,
         response)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
       $20)`,
    [
      row.id,
      caller.workspaceId,
      caller.subAccountId,
      row.account_id,
      row.exchange,
      row.market,
      row.side,
      row.from_coin,
      row.to_coin,
      row.given,
      row.amount,
      row.price,
      row.receive,
      JSON.stringify(row.others),
      row.expires_at,
      row.created_at,
      o?.orderId ?? null,
      o?.sequenceId ?? null,
      o?.payloadHash ?? null,
      o?.response ?? null,
    ],
  )
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a conversion of the caller's sub-account with the order that it became.
 * @throws ApiError `NOT_FOUND`
 */
export async function findConversion(
  database: Queryable,
  caller: Caller,
  input: string,
  field = 'id',
): Promise<{ row: ConversionRow; order: OrderRow | null }> {
  const id = input.toLowerCase()
  const row = UUID.test(id)
    ? await database.one<ConversionRow>(
        'select * from conversions where workspace_id = $3 and id = $1 and sub_account_id = $2',
        [id, caller.subAccountId, caller.workspaceId],
      )
    : undefined
  if (!row)
    throw new ApiError(
      'NOT_FOUND',
      `${field}: conversion ${input.slice(0, 100)} does not exist in this sub-account`,
      { field },
    )
  const order =
    row.order_id === null
      ? undefined
      : await database.one<OrderRow>('select * from orders where workspace_id = $2 and id = $1', [
          row.order_id,
          caller.workspaceId,
        ])
  return { row, order: order ?? null }
}
