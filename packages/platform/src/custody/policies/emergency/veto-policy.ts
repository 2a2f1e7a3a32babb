import { z } from 'zod'
import { HASH_MAX } from '../../../core/bounds.ts'
import { endpoint, CARRIERS } from '../../../core/http/endpoint.ts'
import { HASH_PATTERN, policyHash } from '../shapes.ts'
import {
  deliver,
  recordedShape,
  SIGNER_EXAMPLE,
  signerFields,
  signingText,
  verifiedStatement,
  type Services,
} from './signed.ts'

/** Carries a person's veto of a change to the signer nodes. */
export const vetoPolicy = endpoint({
  id: 'vetoPolicy',
  tag: 'Policy',
  description: `Vetoes a change that the signer nodes hold, however it was proposed. ${signingText('custody/policy-veto/v1', ', `policy` (number and hash of the document in force) and `next` (number and hash of the change)')} A person whom the change removes cannot end it alone.`,
  errors: ['APPROVAL_REFUSED', 'APPROVAL_CLOSED', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/veto',
  summary: 'Veto a policy change',
  access: 'write',
  roles: CARRIERS,
  audit: 'entry',
  body: z.strictObject({
    ...signerFields,
    hash: z
      .string()
      .max(HASH_MAX)
      .regex(HASH_PATTERN, 'must be 64 lower-case hex digits')
      .meta({
        description: 'Hash of the document that would come into force',
        maxLength: 64,
        examples: ['ab'.repeat(32)],
      }),
  }),
  example: { ...SIGNER_EXAMPLE, hash: 'ab'.repeat(32) },
  response: z.object({ hash: policyHash, vetoed: recordedShape }),
  async handler({ caller, body: { hash, ...signer } }, services: Services) {
    const verified = await verifiedStatement(services, caller.workspace, signer, (inForce) => ({
      kind: 'veto',
      policy: { number: inForce.number, hash: inForce.hash },
      next: { number: inForce.number + 1, hash },
    }))
    return { body: { hash, vetoed: await deliver(services, caller.workspace, verified) } }
  },
})
