import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { hashRequest } from '../../core/http/idempotency/payload.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import type { Venues } from '../exchanges/venues.ts'
import type { Trading } from './loop.ts'
import { ApiError } from '../../core/errors.ts'
import { type AccountRow } from '../exchanges/account.ts'
import { findCounted } from '../exchanges/identity.ts'
import { callExchange, findMarket } from '../exchanges/market-data.ts'
import type { Market } from '../exchanges/venue.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { decideOnce, type Admit } from '../../core/http/idempotent-decision.ts'
import { answeredTo, sequenceIdIn } from '../../core/http/replay.ts'
import { quoteOrderFee, reserveOrderFee } from './fee.ts'
import { clientIdOf, orderShape, presentOrder, tellOrder, type OrderRow } from './order.ts'
import { orderBody, type OrderBody } from './order-body.ts'
import { checkBody, checkTraits, orderParamsOf } from './order-params.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers'>
  environment: Environment
  database: Database
  prices: Prices
  exchanges: Venues
  trading: Trading
}

/** Creates an order at an exchange; at most one order per sub-account and `sequence_id`. */
export const createOrder = endpoint({
  id: 'createOrder',
  tag: 'Trading',
  description:
    'Creates a limit or market order at a linked account. The order is checked against the market’s step sizes and the prepaid fee account, sent once, and tracked until its outcome is known. Send a `sequence_id`: a repeated request returns the same order.',
  errors: [
    'NOT_FOUND',
    'PREPAID_FEE_EXHAUSTED',
    'PRICE_UNAVAILABLE',
    'INSUFFICIENT_BALANCE',
    'INVALID_AMOUNT',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  example: {
    exchange_account: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    market: 'BTC/USD',
    side: 'buy',
    type: 'limit',
    amount: 0.1,
    price: 60000.5,
    sequence_id: 'rebalance-7',
  },
  method: 'POST',
  path: '/dac/v1/orders',
  summary: 'Create an order',
  access: 'write',
  audit: {
    not: 'the order is stored, and an entry for each would serialize the orders of a workspace',
  },
  body: orderBody,
  response: orderShape,
  earlier: ({ caller, fields, body }, services: Pick<Services, 'database'>) =>
    answeredTo(
      services.database,
      'orders',
      caller,
      sequenceIdIn(fields['sequence_id']),
      body ? hashRequest(body) : UNREADABLE_PAYLOAD,
    ),
  async handler({ caller, body, askedAt }, services: Services) {
    const payloadHash = hashRequest(body)
    return decideOnce(
      services.database,
      {
        scope: 'orders',
        subAccountId: caller.subAccountId,
        name: body.sequence_id,
        payloadHash,
        askedAt,
      },
      (database) => answeredTo(database, 'orders', caller, body.sequence_id, payloadHash),
      async (admit) => ({
        text: (await makeOrder(services, caller, body, payloadHash, { admit })).response,
      }),
    )
  },
})

/**
 * Creates an order, which is sent as soon as it is committed.
 * @param admit called first in that transaction
 * @param also further writes of that transaction
 * @throws ApiError that names the field
 */
export async function makeOrder(
  services: Services,
  caller: Caller,
  body: OrderBody,
  payloadHash: string | null,
  { admit, also }: { admit: Admit; also?: (tx: Queryable, order: OrderRow) => Promise<void> },
): Promise<OrderRow & { response: string }> {
  checkBody(body)
  const account = await findCounted(
    services.database,
    caller,
    body.exchange_account,
    'exchange_account',
  )
  const { exchange } = account
  if (account.status === 'failing') {
    throw new ApiError(
      'EXCHANGE_KEY_REFUSED',
      `exchange_account: ${exchange} rejects its key (${account.reason}); PATCH the account with a valid key`,
      { field: 'exchange_account' },
    )
  }
  checkTraits(
    body,
    exchange,
    await callExchange(services, exchange, (name) => services.exchanges.traits(name)),
  )
  const market = await findMarket(services, exchange, body.market)
  if (!market.active)
    throw new ApiError('INVALID_REQUEST', `market: ${market.symbol} is closed at ${exchange} now`, {
      field: 'market',
    })
  const book =
    body.type === 'limit'
      ? null
      : await callExchange(services, exchange, (name) =>
          services.exchanges.orderBook(name, market.symbol, 1),
        )
  const params = orderParamsOf(body, market, book)
  const quote = await quoteOrderFee(services, caller.workspaceId, market, params)
  const id = services.environment.uuid()
  const created = await services.database.transaction(async (tx) => {
    await admit(tx)
    // An account that is being unlinked, or became a duplicate, accepts no orders.
    await findCounted(tx, caller, account.id, 'exchange_account', true)
    const row = await insertOrder(tx, {
      id,
      caller,
      account,
      market,
      body,
      params,
      quote,
      payloadHash,
    })
    const response = stringifyJson(presentOrder(row))
    await tx.query('update orders set response = $2 where workspace_id = $3 and id = $1', [
      id,
      response,
      caller.workspaceId,
    ])
    await tellOrder(tx, row, 'order.created')
    await also?.(tx, row)
    await reserveOrderFee(tx, caller.workspaceId, id, quote)
    return { ...row, response }
  })
  services.environment.checkpoint('order.created')
  services.trading.due.ring()
  return created
}

/** An order to insert, with the terms on which it is sent. */
interface NewOrder {
  id: string
  caller: Caller
  account: AccountRow
  market: Market
  body: OrderBody
  params: ReturnType<typeof orderParamsOf>
  quote: Awaited<ReturnType<typeof quoteOrderFee>>
  payloadHash: string | null
}

/** Inserts an order that is due now. Its response is written later in the same commit. */
async function insertOrder(
  tx: Queryable,
  { id, caller, account, market, body, params, quote, payloadHash }: NewOrder,
): Promise<OrderRow> {
  return (await tx.one<OrderRow>(
    `insert into orders (id, workspace_id, sub_account_id, account_id, exchange, market, base,
         quote, side, type, amount, quote_amount,
         price, time_in_force, post_only, max_slippage_bps, client_id, platform_fee, amount_usd,
           sequence_id, payload_hash, response,
         next_run_at, created_at, updated_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
         $20, $21, '', $22, $22, $22)
       returning *`,
    [
      id,
      caller.workspaceId,
      caller.subAccountId,
      account.id,
      account.exchange,
      market.symbol,
      market.base,
      market.quote,
      body.side,
      body.type,
      params.amount.toString(),
      params.quoteAmount?.toString() ?? null,
      params.price.toString(),
      params.timeInForce,
      params.postOnly,
      params.slippageBps,
      clientIdOf(id),
      quote.fee.toString(),
      quote.amountUsd?.toString() ?? null,
      body.sequence_id ?? null,
      payloadHash,
      tx.now(),
    ],
  )) as OrderRow
}
