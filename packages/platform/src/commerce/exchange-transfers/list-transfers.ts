import { z } from 'zod'
import { input, readList } from '../../core/database/counted.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { oneOf, pageOf, pageQuery, text } from '../../core/http/schemas.ts'
import {
  DIRECTIONS,
  exchangeTransferShape,
  presentExchangeTransfer,
  TRANSFER_STATUSES,
  type ExchangeTransferRow,
} from './transfer.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Lists transfers between the sub-account's wallets and exchanges, newest first. */
export const listExchangeTransfers = endpoint({
  id: 'listExchangeTransfers',
  tag: 'Exchange transfers',
  description:
    'Returns transfers between your wallets and exchanges in both directions, newest first.',
  errors: ['NOT_FOUND', 'UNSUPPORTED_ASSET', 'EXCHANGE_UNSUPPORTED'],
  method: 'GET',
  path: '/dac/v1/exchange-transfers',
  summary: 'List exchange transfers',
  access: 'read',
  query: z.strictObject({
    exchange_account: text(100).optional(),
    asset: text(64).optional(),
    direction: oneOf(DIRECTIONS).optional(),
    status: oneOf(TRANSFER_STATUSES).optional(),
    transaction_id: text(100).optional(),
    ...pageQuery,
  }),
  response: pageOf(exchangeTransferShape),
  async handler({ caller, query }, services: Services) {
    const { page, limit } = query
    const values: unknown[] = [caller.subAccountId, caller.workspaceId]
    const conditions = ['workspace_id = $2 and sub_account_id = $1']
    const where = (value: string | undefined, condition: (at: string) => string): void => {
      if (value === undefined) return
      values.push(value)
      conditions.push(condition(`$${values.length}`))
    }
    where(query.exchange_account?.toLowerCase(), (at) => `account_id::text = ${at}`)
    where(query.asset, (at) => `asset = ${at}`)
    where(query.direction, (at) => `direction = ${at}`)
    where(query.status, (at) => `status = ${at}`)
    // An invalid ID matches nothing.
    where(query.transaction_id, (at) =>
      UUID.test(query.transaction_id ?? '')
        ? `transaction_id = ${at}::uuid`
        : `${at}::text is null`,
    )
    const { rows, total } = await readList<ExchangeTransferRow>(
      services.database,
      {
        list: 'exchange_transfers',
        columns: '*',
        where: conditions.join(' and '),
        values,
        filters:
          query.transaction_id !== undefined
            ? null
            : input({
                account_id: query.exchange_account?.toLowerCase(),
                asset: query.asset,
                direction: query.direction,
                status: query.status,
              }),
        from: null,
        before: null,
      },
      page,
      limit,
    )
    return { body: { data: rows.map(presentExchangeTransfer), page, limit, total } }
  },
})
