import type { Registry } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { withTimeout } from '../../core/engine/with-timeout.ts'
import type { Environment } from '../../core/environment.ts'
import { ApiError } from '../../core/errors.ts'
import { ownPath } from '../../core/signing/own-paths.ts'
import type { WorkspacePolicies } from './workspace-policies.ts'

interface Services {
  environment: Environment
  database: Queryable
  registry: Registry
  policies: Pick<WorkspacePolicies, 'isGoverned' | 'judge'>
}

/** A new request with its destination in canonical form. */
interface Requested {
  /** ID of the caller's workspace. */
  workspace: string
  signed: SignedRequest
  network: string
  address: string
  tag: string | null
}

/**
 * Rejects a request that the policy of the workspace denies. Anything else is decided later, when it
 * is queued and when it is signed. For a workspace that is not known to have a policy, slow signer
 * nodes do not delay the response.
 * @throws ApiError `POLICY_DENIED`
 */
export async function assertNotDenied(
  services: Services,
  { workspace, signed, network, address, tag }: Requested,
): Promise<void> {
  const { environment, policies } = services
  const judging = policies.judge(workspace, signed, async () => ({
    to_path: tag === null ? await ownPath(services, workspace, network, address) : undefined,
  }))
  const outcome = policies.isGoverned(workspace)
    ? await judging
    : await withTimeout(environment, judging, { kind: 'none' as const })
  if (outcome.kind !== 'denied') return
  const { policy, tried } = outcome.judgement
  throw new ApiError('POLICY_DENIED', outcome.message, { details: { policy, tried } })
}
