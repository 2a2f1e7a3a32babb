import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { isSamePayload, UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { hashRequest } from '../../core/http/idempotency/payload.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Prices } from '../../custody/prices/prices.ts'
import type { Venues } from '../exchanges/venues.ts'
import type { Trading } from './loop.ts'
import { ApiError } from '../../core/errors.ts'
import { showUnits } from '../exchanges/units.ts'
import { endpoint, type Caller, type Reply } from '../../core/http/endpoint.ts'
import { decideOnce, type Admit } from '../../core/http/idempotent-decision.ts'
import { sequenceIdIn, replayed } from '../../core/http/replay.ts'
import { text } from '../../core/http/schemas.ts'
import {
  bestConversion,
  conversionBody,
  conversionShape,
  findConversion,
  insertConversion,
  presentConversion,
  type ConversionRow,
  type NewConversion,
} from './conversion.ts'
import { makeOrder } from './create-order.ts'
import type { OrderRow } from './order.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers'>
  environment: Environment
  database: Database
  registry: Registry
  prices: Prices
  exchanges: Venues
  trading: Trading
}

const body = z.strictObject({
  quote: text(100)
    .optional()
    .meta({ description: 'Id of a quote; if absent, the fields of a quote are required' }),
  from_asset: conversionBody.from_asset.optional(),
  to_asset: conversionBody.to_asset.optional(),
  amount: conversionBody.amount.optional(),
  accounts: conversionBody.accounts,
  sequence_id: text(200).optional().meta({
    description:
      'Idempotency key, unique within the sub-account’s conversions; a quote already acts as one',
  }),
})
type Body = z.output<typeof body>

/**
 * Converts at the quoted price, or at the current best price: one order with the quote's limit. The
 * amount that the order book does not offer any more remains unconverted.
 */
export const createConversion = endpoint({
  id: 'createConversion',
  tag: 'Trading',
  description:
    'Converts by a quote, or at the current order books, with one market order at a linked account.',
  errors: [
    'NOT_FOUND',
    'INVALID_AMOUNT',
    'QUOTE_EXPIRED',
    'CONVERSION_UNAVAILABLE',
    'PREPAID_FEE_EXHAUSTED',
    'PRICE_UNAVAILABLE',
    'INSUFFICIENT_BALANCE',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  example: { from_asset: 'BTC', to_asset: 'USDT', amount: 0.015, sequence_id: 'convert-12' },
  method: 'POST',
  path: '/dac/v1/conversions',
  summary: 'Create a conversion',
  access: 'write',
  audit: { not: 'the conversion is stored, and an entry for each would serialize them' },
  body,
  response: conversionShape,
  async earlier(
    { caller, fields, body: request },
    services: Pick<Services, 'environment' | 'database'>,
  ) {
    const payloadHash = request ? hashRequest(request) : UNREADABLE_PAYLOAD
    const quote = text(100).safeParse(fields['quote']).data
    const keys = [{ quote }, { sequence_id: sequenceIdIn(fields['sequence_id']) }]
    for (const key of keys) {
      const existing = await answeredBefore(
        services,
        services.database,
        caller,
        key,
        payloadHash,
      ).catch(nothingFound)
      if (existing) return existing
    }
    return null
  },
  async handler({ caller, body: request, askedAt }, services: Services) {
    const payloadHash = hashRequest(request)
    const { quote, sequence_id: sequence } = request
    return decideOnce(
      services.database,
      {
        scope: quote === undefined ? 'conversions' : 'quotes',
        subAccountId: caller.subAccountId,
        name: quote ?? sequence,
        payloadHash,
        askedAt,
      },
      (database) => answeredBefore(services, database, caller, request, payloadHash),
      (admit) => create(services, caller, request, payloadHash, admit),
    )
  },
})

async function answeredBefore(
  services: Pick<Services, 'environment'>,
  database: Queryable,
  caller: Caller,
  { quote, sequence_id: sequence }: Pick<Body, 'quote' | 'sequence_id'>,
  payloadHash: string,
): Promise<Reply | null> {
  const existing =
    quote !== undefined
      ? await findConversion(database, caller, quote, 'quote')
      : sequence === undefined
        ? null
        : await bySequence(database, caller, sequence)
  if (!existing || existing.order === null) return null
  const shown =
    existing.row.response ??
    stringifyJson(presentConversion(existing.row, existing.order, services.environment.now()))
  return replayed(
    shown,
    quote !== undefined || isSamePayload(existing.row.payload_hash ?? undefined, payloadHash),
  )
}

/** Returns null for an unknown quote, which has no earlier response; rethrows any other error. */
function nothingFound(error: unknown): null {
  if (error instanceof ApiError && error.code === 'NOT_FOUND') return null
  throw error
}

async function bySequence(database: Queryable, caller: Caller, sequence: string) {
  const row = await database.one<{ id: string }>(
    `select id from conversions where workspace_id = $3 and sub_account_id = $1
      and sequence_id = $2`,
    [caller.subAccountId, sequence, caller.workspaceId],
  )
  return row ? findConversion(database, caller, row.id) : null
}

async function create(
  services: Services,
  caller: Caller,
  request: Body,
  payloadHash: string,
  admit: Admit,
): Promise<Reply> {
  let response = ''
  const answer = (row: NewConversion, order: OrderRow): string => {
    response = stringifyJson(presentConversion(row, order, services.environment.now()))
    return response
  }
  const { from_asset: from, to_asset: to, amount, quote } = request
  if (quote === undefined) {
    const missing = (['from_asset', 'to_asset', 'amount'] as const).find(
      (field) => request[field] === undefined,
    )
    if (missing)
      throw new ApiError('INVALID_REQUEST', `${missing}: is required, unless quote is sent`, {
        field: missing,
      })
    const row = await bestConversion(services, caller, {
      from_asset: from as string,
      to_asset: to as string,
      amount: amount as string,
      accounts: request.accounts,
    })
    await orderOf(services, caller, row, admit, (tx, order) =>
      insertConversion(tx, caller, row, {
        orderId: order.id,
        sequenceId: request.sequence_id ?? null,
        payloadHash,
        response: answer(row, order),
      }),
    )
    return { text: response }
  }
  const extra = (['from_asset', 'to_asset', 'amount', 'accounts', 'sequence_id'] as const).find(
    (field) => request[field] !== undefined,
  )
  if (extra)
    throw new ApiError('INVALID_REQUEST', `${extra}: must be omitted, because the quote fixes it`, {
      field: extra,
    })
  const { row } = await findConversion(services.database, caller, quote, 'quote')
  const late = () =>
    new ApiError('QUOTE_EXPIRED', 'quote: has expired; nothing was ordered, request a new quote', {
      field: 'quote',
    })
  if (row.expires_at.getTime() <= services.environment.now()) throw late()
  await orderOf(services, caller, row, admit, async (tx, order) => {
    // `order_id is null` makes PostgreSQL search by ID, instead of among all conversions without an
    // order.
    const taken = await tx.query(
      `update conversions set order_id = $2, response = $4
       where workspace_id = $5 and id = $1 and num_nulls(order_id) = 1 and expires_at > $3
         returning 1`,
      [row.id, order.id, tx.now(), answer(row, order), caller.workspaceId],
    )
    if (taken.length === 0) throw late()
  })
  return { text: response }
}

const orderOf = (
  services: Services,
  caller: Caller,
  row: Pick<ConversionRow, 'account_id' | 'market' | 'side' | 'amount' | 'price'>,
  admit: Admit,
  also: (tx: Queryable, order: OrderRow) => Promise<void>,
) =>
  makeOrder(
    services,
    caller,
    {
      exchange_account: row.account_id,
      market: row.market,
      side: row.side,
      type: 'limit',
      amount: showUnits(BigInt(row.amount)),
      price: showUnits(BigInt(row.price)),
      time_in_force: 'IOC',
    },
    null,
    { admit, also },
  )
