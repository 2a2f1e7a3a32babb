import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import { ADDRESS_MAX, ID_MAX, MESSAGE_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { exact, exactUsd } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'
import { decimalOrNull, units, unsignedUnits } from '../exchanges/market-data.ts'
import { divide, showUnits } from '../exchanges/units.ts'
import type { Side, TimeInForce } from '../exchanges/venue.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { emit } from '../../core/ledger/post.ts'

export const ORDER_STATUSES = [
  'open',
  'partially_filled',
  'filled',
  'cancelled',
  'rejected',
  'unknown',
] as const
export type OrderStatus = (typeof ORDER_STATUSES)[number]
/**
 * NEW; SENDING, stored before the request is sent; ASKING, the response was lost; WORKING, the
 * exchange has the order; ENDED.
 */
const ORDER_STATES = ['NEW', 'SENDING', 'ASKING', 'WORKING', 'ENDED'] as const
type OrderState = (typeof ORDER_STATES)[number]

/**
 * A row of `orders`. Amounts, prices and fees at the exchange are decimal strings of units; USD is
 * in millionths.
 */
export interface OrderRow {
  id: string
  workspace_id: string
  sub_account_id: string
  account_id: string
  exchange: string
  market: string
  base: string
  quote: string
  side: Side
  type: 'market' | 'limit'
  amount: string
  quote_amount: string | null
  price: string
  time_in_force: TimeInForce
  post_only: boolean
  max_slippage_bps: number | null
  client_id: string
  venue_id: string | null
  state: OrderState
  status: OrderStatus
  reason: string | null
  last_error: string | null
  filled: string
  cost: string
  fees: Record<string, string>
  platform_fee: string
  fee_charged: string | null
  amount_usd: string | null
  cancel_requested_at: Date | null
  sent_at: Date | null
  final_seen: string | null
  alerted_at: Date | null
  sequence_id: string | null
  version: number
  attempts: number
  lease_token: string | null
  created_at: Date
  updated_at: Date
}

/**
 * Maximum number of coins in which an exchange charges the fees of one order; rarely more than two.
 */
const FEES_MAX = 100

export const orderShape = z
  .object({
    id: z.string().max(ID_MAX),
    exchange_account: z.string().max(ID_MAX),
    exchange: z.string().max(WORD_MAX),
    market: z.string().max(WORD_MAX),
    side: z.enum(['buy', 'sell']),
    type: z.enum(['market', 'limit']),
    status: z.enum(ORDER_STATUSES),
    sub_status: z.enum(ORDER_STATES).meta({
      description:
        'NEW: not sent yet; SENDING: the order is being sent; ASKING: the response was lost, and the exchange is queried; WORKING: the exchange accepted it; ENDED',
    }),
    amount: units,
    quote_amount: units.nullable(),
    price: unsignedUnits.nullable(),
    protection_price: unsignedUnits
      .nullable()
      .meta({ description: 'For a market order: no part is executed at a worse price' }),
    time_in_force: z.enum(['GTC', 'IOC', 'FOK']),
    post_only: z.boolean(),
    max_slippage_bps: z.int().min(0).max(10_000).nullable(),
    filled: units,
    remaining: units,
    average_price: unsignedUnits.nullable(),
    cost: units,
    fees: z
      .array(z.object({ asset: z.string().max(WORD_MAX), amount: units }))
      .max(FEES_MAX)
      .meta({ description: 'Fees that the exchange charged' }),
    reason: z
      .string()
      .max(MESSAGE_MAX)
      .nullable()
      .meta({ description: 'Why the order was rejected, or ended without being filled' }),
    client_order_id: z.string().max(ID_MAX),
    exchange_order_id: z.string().max(ADDRESS_MAX).nullable(),
    platform_fee: z.number().meta({
      description:
        'USD: the amount reserved while the order is open, then the fee for the filled amount',
    }),
    cancel_requested: z.boolean(),
    sequence_id: z.string().max(NAME_MAX).nullable(),
    version: z.int().min(0),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Order' })

export function presentOrder(row: OrderRow) {
  const [amount, filled, cost] = [BigInt(row.amount), BigInt(row.filled), BigInt(row.cost)]
  const isMarket = row.type === 'market'
  return {
    id: row.id,
    exchange_account: row.account_id,
    exchange: row.exchange,
    market: row.market,
    side: row.side,
    type: row.type,
    status: row.status,
    sub_status: row.state,
    amount: exact(showUnits(amount)),
    quote_amount: decimalOrNull(row.quote_amount === null ? null : BigInt(row.quote_amount)),
    price: isMarket ? null : exact(showUnits(BigInt(row.price))),
    protection_price: isMarket ? exact(showUnits(BigInt(row.price))) : null,
    time_in_force: row.time_in_force,
    post_only: row.post_only,
    max_slippage_bps: row.max_slippage_bps,
    filled: exact(showUnits(filled)),
    remaining: exact(showUnits(filled > amount ? 0n : amount - filled)),
    average_price: filled === 0n ? null : exact(showUnits(divide(cost, filled))),
    cost: exact(showUnits(cost)),
    fees: Object.entries(row.fees)
      .slice(0, FEES_MAX)
      .map(([asset, fee]) => ({ asset, amount: exact(showUnits(BigInt(fee))) })),
    reason: row.reason,
    client_order_id: row.client_id,
    exchange_order_id: row.venue_id,
    platform_fee: exactUsd(BigInt(row.fee_charged ?? row.platform_fee)),
    cancel_requested: row.cancel_requested_at !== null,
    sequence_id: row.sequence_id,
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/** Emits an event about an order, whose row is locked. */
export async function tellOrder(
  tx: Queryable,
  row: OrderRow,
  type: 'order.created' | 'order.updated',
): Promise<void> {
  await emit(tx, row.workspace_id, row.sub_account_id, type, stringifyJson(presentOrder(row)))
}

/**
 * Returns the client ID of an order: its ID as 32 letters and digits, which every exchange accepts.
 */
export const clientIdOf = (id: string): string => id.replaceAll('-', '')

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns an order of the caller's sub-account. An order of another sub-account is reported as
 * missing.
 * @throws ApiError `NOT_FOUND`
 */
export async function findOrder(
  database: Queryable,
  caller: Caller,
  input: string,
  locked = false,
): Promise<OrderRow> {
  const id = input.toLowerCase()
  const row = UUID.test(id)
    ? await database.one<OrderRow>(
        `select * from orders where workspace_id = $3 and id = $1
          and sub_account_id = $2${locked ? ' for update' : ''}`,
        [id, caller.subAccountId, caller.workspaceId],
      )
    : undefined
  if (row) return row
  throw new ApiError(
    'NOT_FOUND',
    `id: order ${input.slice(0, 100)} does not exist in this sub-account`,
    { field: 'id' },
  )
}
