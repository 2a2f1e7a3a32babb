import type { Queryable } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { ApprovalRequest } from './approval-request.ts'

/** A request for approvals with its transfer. */
export type FoundApproval = ApprovalRequest &
  Pick<TransactionRow, 'id' | 'workspace_id' | 'sub_account_id' | 'request'> & {
    transaction_state: TransactionRow['state']
  }

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a request for approvals by the ID of its transfer; undefined if there is none.
 * @param workspace ID of the workspace
 */
export async function findApproval(
  database: Queryable,
  workspace: string,
  input: string,
): Promise<FoundApproval | undefined> {
  const id = input.toLowerCase()
  if (!UUID.test(id)) return undefined
  const rows = await database.query<FoundApproval>(
    `select r.transaction_id, r.state, r.statement, r.needs, r.expires_at, r.created_at,
       t.id, t.workspace_id, t.sub_account_id, t.request, t.state transaction_state
     from approval_requests r
     join transactions t on t.workspace_id = r.workspace_id and t.id = r.transaction_id
     where r.workspace_id = $1 and r.transaction_id = $2`,
    [workspace, id],
  )
  return rows[0]
}
