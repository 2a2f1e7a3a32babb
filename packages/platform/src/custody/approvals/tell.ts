import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { emit } from '../../core/ledger/post.ts'
import { decisionsOf } from '../../core/signing/approvals.ts'
import { findApproval } from './find-approval.ts'
import { presentApproval } from './present.ts'

/** Emits an event about the request for approvals of a transfer, whose row is locked. */
export async function tellApproval(
  tx: Queryable,
  { workspace_id: workspace, id }: { workspace_id: string; id: string },
  type: 'approval.requested' | 'approval.updated' | 'approval.closed',
): Promise<void> {
  const found = await findApproval(tx, workspace, id)
  if (!found) return
  const payload = presentApproval(found, await decisionsOf(tx, found))
  await emit(tx, workspace, found.sub_account_id, type, stringifyJson(payload))
}
