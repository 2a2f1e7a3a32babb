import { carriedApproval } from '@custody/policy'
import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { endpoint, CARRIERS } from '../../../core/http/endpoint.ts'
import { policyHash } from '../shapes.ts'
import {
  deliver,
  recordedShape,
  SIGNER_EXAMPLE,
  signerFields,
  signingText,
  verifiedStatement,
  type Services,
} from './signed.ts'

const { by: name } = carriedApproval.shape

/** Carries a person's suspension of another person's key to the signer nodes. */
export const suspendPolicyKey = endpoint({
  id: 'suspendPolicyKey',
  tag: 'Policy',
  description: `Suspends a key of another person for seven days. A suspended key approves nothing; it can still veto, stop and reject. Each person can have one suspension in force. ${signingText('custody/policy-suspend/v1', ', `target` and `reason`')}`,
  errors: ['APPROVAL_REFUSED', 'APPROVAL_CLOSED', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/suspend',
  summary: 'Suspend a key',
  access: 'write',
  roles: CARRIERS,
  audit: 'entry',
  body: z.strictObject({
    ...signerFields,
    target: z.strictObject({ person: name, key: name }).meta({
      description: 'The person and their key',
      examples: [{ person: 'alice', key: 'k1' }],
    }),
    reason: text(200).meta({ description: 'Reason, which is signed' }),
  }),
  example: {
    ...SIGNER_EXAMPLE,
    target: { person: 'alice', key: 'k1' },
    reason: 'The laptop is lost',
  },
  response: z.object({
    hash: policyHash.meta({ description: 'Hash of the suspension' }),
    suspended: recordedShape,
  }),
  async handler({ caller, body: { target, reason, ...signer } }, services: Services) {
    const verified = await verifiedStatement(services, caller.workspace, signer, () => ({
      kind: 'suspend',
      target,
      reason,
    }))
    const suspended = await deliver(services, caller.workspace, verified)
    return { body: { hash: verified.hash, suspended } }
  },
})
