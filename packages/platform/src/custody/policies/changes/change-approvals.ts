import type { CarriedApproval } from '@custody/policy'
import type { ChangeApprovals, ChangeRange } from '../../approvals/change-approvals.ts'
import type { RequestState } from '../../approvals/approval-request.ts'
import {
  findChange,
  listChanges,
  statementFields,
  type ChangeState,
  type PolicyChange,
} from './change.ts'
import { collectedOf, type Collected } from './collected.ts'
import { decideChange } from './decide-change.ts'
import type { Services } from './progress.ts'
import { decisionsOf } from './shapes.ts'

/** State of the request for approvals of a change. */
const STATES: Record<ChangeState, RequestState> = {
  open: 'open',
  approved: 'approved',
  held: 'approved',
  in_force: 'approved',
  rejected: 'rejected',
  vetoed: 'ended',
  refused: 'ended',
  expired: 'expired',
  ended: 'ended',
}
const HAVE_MAX = 16

/** Converts a change to a request for approvals. */
const present = (change: PolicyChange, collected: readonly Collected[]) => ({
  id: change.id,
  state: STATES[change.state],
  action: 'policy_change' as const,
  facts: null,
  change: {
    number: change.number,
    hash: change.hash,
    comment: change.comment,
    missing: change.missing,
  },
  needs: change.needs,
  have: decisionsOf(collected).slice(0, HAVE_MAX),
  created_at: change.created_at.toISOString(),
  expires_at: change.expires_at.toISOString(),
})

/** Makes policy changes available to the endpoints about approvals. */
export function changeApprovalsOf(services: Services): ChangeApprovals {
  const { database } = services
  const requireChange = async (workspace: string, id: string) => {
    const change = await findChange(database, workspace, id)
    if (!change) throw new Error('the policy change is not there any more')
    return change
  }
  const detailOf = async (change: PolicyChange) => {
    const collected = await collectedOf(database, change)
    return { ...present(change, collected), statement: statementFields(change) }
  }
  return {
    async read(workspace, id) {
      const change = await findChange(database, workspace, id)
      return change && (await detailOf(change))
    },
    async list(workspace: string, state: RequestState, range: ChangeRange) {
      const states = (Object.keys(STATES) as ChangeState[]).filter((each) => STATES[each] === state)
      const changes = await listChanges(database, workspace, states, range)
      return Promise.all(
        changes.map(async (change) => ({
          at: change.created_at,
          approval: present(change, await collectedOf(database, change)),
        })),
      )
    },
    async decide(workspace: string, id: string, decision: Omit<CarriedApproval, 'id'>) {
      await decideChange(services, await requireChange(workspace, id), decision)
      const { state, needs } = await requireChange(workspace, id)
      // Another decision of the same person may have been stored in the meantime.
      const [open, rejected] = [STATES[state] === 'open', STATES[state] === 'rejected']
      const isRejected = decision.decision === 'reject' && !open
      return { id, needs, state: open ? 'open' : rejected || isRejected ? 'rejected' : 'approved' }
    },
  }
}
