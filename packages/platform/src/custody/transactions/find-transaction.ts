import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import type { Database } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'

interface Services {
  database: Database
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a transaction of the caller's sub-account by its platform id.
 * @throws ApiError `NOT_FOUND`, or `FORBIDDEN` if it belongs to another workspace
 */
export async function findTransaction(
  services: Services,
  caller: Caller,
  input: string,
): Promise<TransactionRow> {
  const id = input.toLowerCase()
  const missing = () =>
    new ApiError(
      'NOT_FOUND',
      `id: transaction ${input.slice(0, 100)} does not exist in this sub-account`,
      { field: 'id' },
    )
  if (!UUID.test(id)) throw missing()
  const row = await services.database.one<TransactionRow>(
    'select * from transactions where workspace_id = $2 and id = $1',
    [id, caller.workspaceId],
  )
  if (
    !row &&
    (await services.database.one('select 1 from transactions where id::text = $1', [id]))
  ) {
    throw new ApiError('FORBIDDEN', 'id: the transaction belongs to another workspace', {
      field: 'id',
    })
  }
  if (!row || row.sub_account_id !== caller.subAccountId) throw missing()
  return row
}
