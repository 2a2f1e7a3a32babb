import { ApiError } from '../../core/errors.ts'
import { withTimeout } from '../../core/engine/with-timeout.ts'
import type { Environment } from '../../core/environment.ts'
import type { Judgement } from './judgement.ts'
import { judgeRule, type JudgedRule } from './judge-rule.ts'
import type { WorkspacePolicies } from './workspace-policies.ts'

type Services = Parameters<typeof judgeRule>[0] & {
  environment: Environment
  policies: Pick<WorkspacePolicies, 'isGoverned'>
}

/**
 * Lets two nodes judge a forwarding rule that is about to be created. For a workspace that is not
 * known to have a policy, slow signer nodes do not delay the response.
 * @returns the approvals that its smallest forward requires; null if it requires none
 * @throws ApiError `POLICY_DENIED` if the policy allows no forward of it, also no larger one
 */
export async function judgeNewRule(
  services: Services,
  rule: JudgedRule,
): Promise<Judgement | null> {
  const { environment, policies } = services
  const judging = judgeRule(services, rule, null)
  const outcome = policies.isGoverned(rule.workspace_id)
    ? await judging
    : await withTimeout(environment, judging, { kind: 'none' as const })
  if (outcome.kind === 'approval') return outcome.judgement
  if (outcome.kind !== 'denied' || outcome.judgement.fits_above !== false) return null
  const { policy, tried } = outcome.judgement
  throw new ApiError('POLICY_DENIED', outcome.message, { details: { policy, tried } })
}
