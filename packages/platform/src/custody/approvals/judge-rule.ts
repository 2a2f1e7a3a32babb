import type { Registry } from '@custody/chains'
import type { CarriedApproval } from '@custody/policy'
import type { SignedRequest } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { ownPath } from '../../core/signing/own-paths.ts'
import type { Outcome, WorkspacePolicies } from './workspace-policies.ts'

interface Services {
  database: Queryable
  registry: Registry
  policies: Pick<WorkspacePolicies, 'judge'>
}

/** What the policy of its workspace judges of a forwarding rule. */
export interface JudgedRule {
  workspace_id: string
  network: string
  destination: string
  address_tag: string | null
  request: SignedRequest
}

/**
 * Lets two nodes judge a forward of a standing rule, by the approvals on their records.
 * @param amount of the forward, in the smallest unit; null: the minimum amount of the rule
 * @param decisions further decisions of people about the rule, which are not on record
 */
export function judgeRule(
  services: Services,
  { workspace_id: workspace, network, destination, address_tag, request }: JudgedRule,
  amount: string | null,
  decisions: readonly CarriedApproval[] = [],
): Promise<Outcome> {
  return services.policies.judge(workspace, request, async () => ({
    ...(decisions.length === 0 ? {} : { decisions }),
    ...(amount === null ? {} : { amount }),
    to_path:
      address_tag === null ? await ownPath(services, workspace, network, destination) : undefined,
  }))
}
