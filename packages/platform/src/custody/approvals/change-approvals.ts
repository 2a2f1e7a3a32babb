import type { CarriedApproval } from '@custody/policy'
import type { z } from 'zod'
import type { RequestState } from './approval-request.ts'
import type { Decided } from './decide.ts'
import type { approvalDetailShape, approvalShape } from './present.ts'

/** Position in a list of changes, and how many to read. */
export interface ChangeRange {
  at: Date | null
  id: string | null
  count: number
}

/**
 * Changes of policies (custody/policies/changes), which people approve as they approve transfers.
 * Each workspace is named by its ID.
 */
export interface ChangeApprovals {
  /** Returns a change with what its approvals sign; undefined if there is none with the ID. */
  read(workspace: string, id: string): Promise<z.output<typeof approvalDetailShape> | undefined>
  /** Lists changes, newest first. */
  list(
    workspace: string,
    state: RequestState,
    range: ChangeRange,
  ): Promise<{ at: Date; approval: z.output<typeof approvalShape> }[]>
  /**
   * Stores a person's decision.
   * @throws ApiError `APPROVAL_CLOSED`, `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
   */
  decide(workspace: string, id: string, decision: Omit<CarriedApproval, 'id'>): Promise<Decided>
}
