import type { Need, Statement } from './judgement.ts'

export const REQUEST_STATES = ['open', 'approved', 'rejected', 'expired', 'ended'] as const
/**
 * `ended`: the transfer failed or was cancelled, or the rule ended or no longer requires approvals,
 * before it was approved or rejected.
 */
export type RequestState = (typeof REQUEST_STATES)[number]

/** A row of `approval_requests`. */
export interface ApprovalRequest {
  /** Public ID of the transfer or of the forwarding rule. */
  transaction_id: string
  state: RequestState
  statement: Statement
  needs: Need[]
  expires_at: Date
  created_at: Date
  /** Memo of the transfer; null: none, or it is a forwarding rule. */
  memo: string | null
  /** API key of the signed request; null: not known. */
  requested_key: string | null
}

/** SQL columns of {@link ApprovalRequest}, of the rows that {@link REQUEST_TABLES} joins. */
export const REQUEST_COLUMNS = `r.transaction_id, r.state, r.statement, r.needs, r.expires_at,
  r.created_at, t.memo, coalesce(t.request, f.request)->>'api_key' requested_key`

/** SQL tables of requests for approvals, with their transfers and rules. */
export const REQUEST_TABLES = `approval_requests r
  left join transactions t on t.workspace_id = r.workspace_id and t.id = r.of_transaction
  left join forward_rules f on f.workspace_id = r.workspace_id and f.id = r.of_rule`
