import type { Registry } from '@custody/chains'
import type { CarriedApproval } from '@custody/policy'
import type { Queryable } from '../../core/database/pool.ts'
import { wakeOne } from '../../core/engine/lease.ts'
import { ownPathsOf } from '../../core/signing/own-paths.ts'
import type { FoundApproval } from './find-approval.ts'
import { judgeRule, type JudgedRule } from './judge-rule.ts'
import type { Outcome, WorkspacePolicies } from './workspace-policies.ts'

// What differs between transfers and forwarding rules that wait for approvals.

interface Services {
  registry: Registry
  database: Queryable
  policies: Pick<WorkspacePolicies, 'judge'>
}

/** Lets two nodes judge what waits, with decisions of people about it. */
export async function judgeFound(
  services: Services,
  found: FoundApproval,
  decisions: readonly CarriedApproval[],
): Promise<Outcome> {
  const { id, workspace_id: workspace, request } = found
  if (found.is_rule) {
    const rule = await services.database.one<JudgedRule & { approval_amount: string | null }>(
      `select workspace_id, network, destination, address_tag, request, approval_amount::text
       from forward_rules where workspace_id = $1 and id = $2`,
      [workspace, id],
    )
    return rule ? judgeRule(services, rule, rule.approval_amount, decisions) : { kind: 'none' }
  }
  const { api_key: _, ...signed } = request!
  return services.policies.judge(workspace, signed, async () => ({
    decisions,
    to_path: (await ownPathsOf(services, workspace, [id])).get(id),
  }))
}

/** Locks the row of what waits. @returns whether it still waits for approvals */
export async function lockWaiting(
  tx: Queryable,
  { is_rule, id, workspace_id: workspace }: FoundApproval,
): Promise<boolean> {
  const row = await tx.one<{ state: string }>(
    is_rule
      ? 'select state from forward_rules where workspace_id = $1 and id = $2 for update'
      : 'select state from transactions where workspace_id = $1 and id = $2 for update',
    [workspace, id],
  )
  return row?.state === 'APPROVAL'
}

/** Makes what waits due. */
export async function wakeFound(
  tx: Queryable,
  { is_rule, id, workspace_id: workspace }: FoundApproval,
): Promise<void> {
  if (!is_rule) return wakeOne(tx, workspace, id)
  await tx.query('update forward_rules set next_run_at = $3 where workspace_id = $1 and id = $2', [
    workspace,
    id,
    tx.now(),
  ])
}
