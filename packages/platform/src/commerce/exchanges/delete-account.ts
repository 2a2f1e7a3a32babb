import { emptyBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ID_MAX } from '../../core/bounds.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { findAccount, idParam, tellAccount, type AccountRow } from './account.ts'
import { bookClosing } from './books.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Venues } from './venues.ts'

interface Services {
  database: Database
  exchanges: Venues
}

/**
 * Deletes an account: its secrets are erased, its orders stay readable, and the ledger has no claim
 * on the exchange afterwards. The body is `{}`, because a signature need not cover the method and
 * without a body it would also be valid for a GET.
 */
export const deleteAccount = endpoint({
  id: 'deleteExchangeAccount',
  tag: 'Exchange accounts',
  description:
    'Unlinks the account and erases its key. Fails while orders or transfers of the account are in progress.',
  errors: ['NOT_FOUND', 'EXCHANGE_ACCOUNT_BUSY'],
  method: 'DELETE',
  path: '/dac/v1/exchange-accounts/{id}',
  summary: 'Unlink an exchange account',
  access: 'write',
  audit: 'entry',
  params: idParam,
  body: emptyBody,
  response: z.object({ id: z.string().max(ID_MAX), deleted: z.literal(true) }),
  async handler({ caller, params }, services: Services) {
    const { id } = await services.database.transaction(async (tx) => {
      const row = await findAccount(tx, caller, params.id, 'id', true)
      const open = await tx.one<{ id: string; count: string }>(
        `select min(id::text) id, count(*)::text count from orders
         where workspace_id = $2 and account_id = $1 and state <> 'ENDED' having count(*) > 0`,
        [row.id, row.workspace_id],
      )
      if (open) {
        throw new ApiError(
          'EXCHANGE_ACCOUNT_BUSY',
          `id: ${open.count} of its orders are in progress (such as ${open.id}); cancel them first`,
          { field: 'id' },
        )
      }
      const moving = await tx.one<{ id: string }>(
        `select id from exchange_transfers where workspace_id = $2 and account_id = $1
          and state not in ('DONE', 'FAILED') limit 1`,
        [row.id, row.workspace_id],
      )
      if (moving) {
        throw new ApiError(
          'EXCHANGE_ACCOUNT_BUSY',
          `id: a transfer of the account is in progress (${moving.id}); wait until it ends`,
          { field: 'id' },
        )
      }
      await bookClosing(tx, row)
      const after = (await tx.one<AccountRow>(
        `update exchange_accounts set status = 'deleted', sealed_credentials = null,
          reconcile_at = null, updated_at = $2
         where id = $1 returning *`,
        [row.id, tx.now()],
      )) as AccountRow
      await tx.query('delete from exchange_balances where account_id = $1', [row.id])
      await tellAccount(tx, after, 'exchange_account.deleted')
      return row
    })
    services.exchanges.forget(id)
    return { body: { id, deleted: true } }
  },
})
