import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import { needShape } from '../../approvals/judgement.ts'
import { ApiError } from '../../../core/errors.ts'
import { endpoint, CARRIERS } from '../../../core/http/endpoint.ts'
import { HASH_PATTERN, policyHash } from '../shapes.ts'
import {
  recordedShape,
  SIGNER_EXAMPLE,
  signerFields,
  signingText,
  verifiedStatement,
  type Services,
} from './signed.ts'
import { advanceStop, countResumes, findStop, storeResume, undelivered } from './stops.ts'

/** Carries a person's approval of the end of a stop. */
export const resumePolicy = endpoint({
  id: 'resumePolicy',
  tag: 'Policy',
  description: `Approves the end of a stop that was sent over the API. With the last approval that \`resume\` of the policy document requires, the stop is ended at the signer nodes. ${signingText('custody/policy-resume/v1', ', `policy` (number and hash of the document in force) and `stop`')} The end of a stop that was signed by \`npx custody policy stop\` requires its file: use \`npx custody policy resume\`.`,
  errors: ['APPROVAL_REFUSED', 'APPROVAL_CLOSED', 'NOT_FOUND', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/resume',
  summary: 'Approve the end of a stop',
  access: 'write',
  roles: CARRIERS,
  audit: 'entry',
  body: z.strictObject({
    ...signerFields,
    stop: z
      .string()
      .regex(HASH_PATTERN, 'must be 64 lower-case hex digits')
      .meta({
        description: 'Hash of the stop',
        maxLength: 64,
        examples: ['ab'.repeat(32)],
      }),
  }),
  example: { ...SIGNER_EXAMPLE, stop: 'ab'.repeat(32) },
  response: z.object({
    stop: policyHash.meta({ description: 'Hash of the stop' }),
    state: z.enum(['stopped', 'resumed']),
    needs: z.array(needShape).max(LIMITS.approvalGroups),
    resumed: recordedShape,
  }),
  async handler({ caller, body: { stop: hash, ...signer } }, services: Services) {
    const { workspace, workspaceId } = caller
    const stop = await findStop(services.database, workspaceId, hash)
    if (!stop)
      throw new ApiError('NOT_FOUND', `stop: no stop ${hash} was sent over the API`, {
        field: 'stop',
      })
    const verified = await verifiedStatement(services, workspace, signer, (inForce) => ({
      kind: 'resume',
      policy: { number: inForce.number, hash: inForce.hash },
      stop: hash,
    }))
    const { inForce } = verified
    if (stop.state === 'ended' || !inForce.stops.some((each) => each.hash === hash))
      throw new ApiError('APPROVAL_CLOSED', 'stop: is not in force', { field: 'stop' })
    await storeResume(services, stop, verified)
    const { needs, isMet } = await countResumes(services, stop, inForce)
    const after = await findStop(services.database, workspaceId, hash)
    if (!isMet || !after) return { body: { stop: hash, state: 'stopped', needs, resumed: [] } }
    const presented = await advanceStop(services, after)
    if (presented.held.length === 0) throw undelivered(presented)
    return { body: { stop: hash, state: 'resumed', needs, resumed: presented.held } }
  },
})
