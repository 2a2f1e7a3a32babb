import type { Queryable } from '../../core/database/pool.ts'
import type { SignedRequest } from '@custody/request-auth'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { REQUEST_COLUMNS, REQUEST_TABLES, type ApprovalRequest } from './approval-request.ts'

/** A request for approvals with its transfer or forwarding rule. */
export type FoundApproval = ApprovalRequest &
  Pick<TransactionRow, 'id' | 'workspace_id' | 'sub_account_id'> & {
    /** The signed request of the caller; a transfer also stores the API key. */
    request: (SignedRequest & { api_key?: string }) | null
    /** Planned network fee in the smallest unit, as digits; null: it is a forwarding rule. */
    planned_fee: string | null
    /** It is a forwarding rule. */
    is_rule: boolean
  }

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a request for approvals by the ID of its transfer or rule; undefined if there is none.
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
    `select ${REQUEST_COLUMNS}, r.is_rule, r.transaction_id id, r.workspace_id, r.sub_account_id,
       coalesce(t.request, f.request) request, t.fee::text planned_fee
     from ${REQUEST_TABLES} where r.workspace_id = $1 and r.transaction_id = $2`,
    [workspace, id],
  )
  return rows[0]
}
