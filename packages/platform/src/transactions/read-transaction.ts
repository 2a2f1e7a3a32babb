import { z } from 'zod'
import { ApiError } from '../errors.ts'
import { endpoint } from '../http/endpoint.ts'
import { presentTransaction, transactionShape, type TransactionRow } from './present.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** One transaction of the caller's sub-account by its platform id. */
export const readTransaction = endpoint({
  method: 'GET', path: '/dac/v1/transaction/{id}', summary: 'Read a transaction', access: 'read',
  params: z.strictObject({ id: z.string() }), response: transactionShape,
  async handler({ services, caller, params }) {
    const id = params.id.toLowerCase()
    const missing = () => new ApiError('NOT_FOUND', `id: there is no transaction ${params.id.slice(0, 100)} in this sub-account`, { field: 'id' })
    if (!UUID.test(id)) throw missing()
    const row = await services.database.one<TransactionRow>('select * from transactions where id = $1', [id])
    if (!row) throw missing()
    if (row.workspace_id !== caller.workspaceId) throw new ApiError('FORBIDDEN', 'id: the transaction belongs to another workspace', { field: 'id' })
    if (row.sub_account_id !== caller.subAccountId) throw missing()
    return { body: presentTransaction(row, services.registry) }
  },
})
