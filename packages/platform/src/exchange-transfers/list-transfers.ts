import { z } from 'zod'
import { endpoint } from '../http/endpoint.ts'
import { oneOf, pageQuery, text } from '../http/schemas.ts'
import { DIRECTIONS, exchangeTransferShape, presentExchangeTransfer, TRANSFER_STATUSES, type ExchangeTransferRow } from './transfer.ts'

/** Transfers between the sub-account's wallets and exchanges, newest first. */
export const listExchangeTransfers = endpoint({
  id: 'listExchangeTransfers', tag: 'Exchange transfers',
  description: 'Transfers between own wallets and exchanges, both ways, newest first.',
  errors: ['NOT_FOUND', 'UNSUPPORTED_ASSET', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET', path: '/dac/v1/exchange-transfers', summary: 'List exchange transfers', access: 'read',
  query: z.strictObject({
    exchange_account: text(100).optional(), asset: text(64).optional(), direction: oneOf(DIRECTIONS).optional(),
    status: oneOf(TRANSFER_STATUSES).optional(), transaction_id: text(100).optional(), ...pageQuery,
  }),
  response: z.object({ data: z.array(exchangeTransferShape), page: z.int(), limit: z.int(), total: z.int() }),
  async handler({ services, caller, query }) {
    const { page, limit } = query
    const found = `sub_account_id = $1 and ($2::text is null or account_id::text = lower($2)) and ($3::text is null or asset = $3)
      and ($4::text is null or direction = $4) and ($5::text is null or status = $5)
      and ($6::text is null or transaction_id::text = lower($6))`
    const values = [
      caller.subAccountId, query.exchange_account ?? null, query.asset ?? null, query.direction ?? null, query.status ?? null,
      query.transaction_id ?? null,
    ]
    const [rows, count] = await Promise.all([
      services.database.query<ExchangeTransferRow>(
        `select * from exchange_transfers where ${found} order by created_at desc, id desc limit $7 offset $8`,
        [...values, limit, (page - 1) * limit]),
      services.database.one<{ total: string }>(`select count(*)::text total from exchange_transfers where ${found}`, values),
    ])
    return { body: { data: rows.map(presentExchangeTransfer), page, limit, total: Number(count?.total ?? 0) } }
  },
})
