import type { Queryable } from '../../../core/database/pool.ts'

/** Numbers of open requests for approvals. */
export interface Waiting {
  /** Transfers and stakes of the sub-account. */
  transfers: number
  /** Forwarding rules of the sub-account. */
  rules: number
  /** Changes of the workspace's policy that wait for approvals or proofs. */
  changes: number
}

/**
 * Counts what waits for approvals in a sub-account, and the policy changes of its workspace.
 * @param before counts only those that expire before this time; null: all
 */
export async function readWaiting(
  database: Queryable,
  { workspaceId, subAccountId }: { workspaceId: string; subAccountId: string },
  before: Date | null = null,
): Promise<Waiting> {
  const waiting = await database.one<Waiting>(
    `select count(*) filter (where not is_rule)::int transfers,
       count(*) filter (where is_rule)::int rules,
       (select count(*)::int from policy_changes where workspace_id = $1 and state = 'open'
         and ($3::timestamptz is null or expires_at < $3)) changes
     from approval_requests where workspace_id = $1 and sub_account_id = $2 and state = 'open'
       and ($3::timestamptz is null or expires_at < $3)`,
    [workspaceId, subAccountId, before],
  )
  return waiting ?? { transfers: 0, rules: 0, changes: 0 }
}
