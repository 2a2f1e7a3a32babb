import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { pageOf, pageQuery, text } from '../../core/http/schemas.ts'
import { accountShape, presentAccount, type AccountRow } from './account.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

/** Lists the sub-account's exchange accounts, newest first. */
export const listAccounts = endpoint({
  id: 'listExchangeAccounts',
  tag: 'Exchange accounts',
  description: 'Returns the linked accounts of the sub-account.',
  method: 'GET',
  path: '/dac/v1/exchange-accounts',
  summary: 'List exchange accounts',
  access: 'read',
  query: z.strictObject({ exchange: text(40).optional(), ...pageQuery }),
  response: pageOf(accountShape),
  async handler({ caller, query: { exchange, page, limit } }, services: Services) {
    const from = `from exchange_accounts where sub_account_id = $1 and status <> 'deleted' and ($2::text is null or exchange = $2)`
    const values = [caller.subAccountId, exchange?.toLowerCase() ?? null]
    const [rows, count] = await Promise.all([
      services.database.query<AccountRow>(
        `select * ${from} order by created_at desc, id desc limit $3 offset $4`,
        [...values, limit, (page - 1) * limit],
      ),
      services.database.one<{ total: string }>(`select count(*)::text total ${from}`, values),
    ])
    return {
      body: { data: rows.map(presentAccount), page, limit, total: Number(count?.total ?? 0) },
    }
  },
})
