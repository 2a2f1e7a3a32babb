import type { Registry } from '@custody/chains'
import { carriedApproval, LIMITS } from '@custody/policy'
import { z } from 'zod'
import { ID_MAX } from '../../core/bounds.ts'
import type { Database } from '../../core/database/pool.ts'
import { endpoint, CARRIERS } from '../../core/http/endpoint.ts'
import { pathId, wholeNumber } from '../../core/http/schemas.ts'
import type { ChangeApprovals } from './change-approvals.ts'
import { decide } from './decide.ts'
import { needShape } from './judgement.ts'
import { assertionShape } from './present.ts'
import { ownApproval } from './read-approval.ts'
import type { WorkspacePolicies } from './workspace-policies.ts'

interface Services {
  registry: Registry
  database: Database
  policies: WorkspacePolicies
  policyChanges: ChangeApprovals
}

const SECONDS_MAX = 9_999_999_999

/** Stores a person's signed decision about a transfer, a forwarding rule or a policy change. */
export const giveApproval = endpoint({
  id: 'giveApproval',
  tag: 'Approvals',
  description:
    'Approves or rejects a transfer, a stake, a forwarding rule or a policy change. `signature` is made with a key of the policy document, over `custody/approval/v1`, a line feed, and the canonical JSON (RFC 8785) of `statement` of `GET /dac/v1/approvals/{id}` with the fields `by`, `key`, `at`, `expires` and `decision`. A passkey signs the SHA-256 of the same bytes as its challenge, and its assertion is sent as `passkey` instead. Two signer nodes verify it before it is stored, and the nodes verify it again before they sign. The API key only carries the decision: the signature of the person is the authority. A decision that is sent again changes nothing; a later decision of the same person replaces the earlier one. A rejection is final: the transfer fails, or the forwarding rule ends. The signer nodes record the approvals of a forwarding rule, which then hold for every forward. For a policy change, an approval signs `custody/policy-change/v1`, a line feed, and `statement` with `by`, `key`, `at` and `expires`; a rejection signs `custody/policy-veto/v1` and the same without `acts_at`, by a member of the group that may veto. The last approval presents the change to the signer nodes.',
  errors: ['NOT_FOUND', 'APPROVAL_CLOSED', 'APPROVAL_REFUSED', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/approvals/{id}',
  summary: 'Approve or reject a transfer, a forwarding rule or a policy change',
  access: 'write',
  roles: CARRIERS,
  audit: 'entry',
  params: z.strictObject({ id: pathId }),
  body: carriedApproval.omit({ id: true }).extend({
    passkey: assertionShape.optional(),
    at: wholeNumber(0, SECONDS_MAX, 'Time of the signature, in Unix seconds'),
    expires: wholeNumber(
      0,
      SECONDS_MAX,
      'Time at which the decision stops counting, in Unix seconds: at most 7 days after `at`',
    ),
  }),
  example: {
    decision: 'approve',
    by: 'alice',
    key: 'k1',
    at: 1_795_600_000,
    expires: 1_795_686_400,
    signature:
      'kq3mT0bPzV7m0cB7aF2r1sXo9pQeYw8uG5hJ4nL6dKcRtZvM1iN0oPxS3fUyE2aWgHjB7kQ9lDzC5vXbN8mTAw==',
  },
  response: z.object({
    id: z.string().max(ID_MAX),
    state: z.enum(['open', 'approved', 'rejected']).meta({
      description: '`open`: further approvals are missing',
    }),
    needs: z.array(needShape).max(LIMITS.approvalGroups),
  }),
  async handler({ caller, params, body }, services: Services) {
    const change = await services.policyChanges.read(caller.workspaceId, params.id)
    if (change)
      return { body: await services.policyChanges.decide(caller.workspaceId, change.id, body) }
    const found = await ownApproval(services.database, caller, params.id)
    return { body: await decide(services, found, { id: found.id, ...body }) }
  },
})
