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
}
