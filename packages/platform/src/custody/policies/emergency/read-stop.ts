import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import { HASH_MAX, TIME_MAX } from '../../../core/bounds.ts'
import { needShape } from '../../approvals/judgement.ts'
import { ApiError } from '../../../core/errors.ts'
import { endpoint } from '../../../core/http/endpoint.ts'
import { policyInForce, timeOf } from '../policy-in-force.ts'
import { personId, policyHash } from '../shapes.ts'
import type { Services } from './signed.ts'
import { countResumes, findStop } from './stops.ts'

/** Returns a stop that was sent over the API. */
export const readPolicyStop = endpoint({
  id: 'readPolicyStop',
  tag: 'Policy',
  description:
    'Returns a stop that was sent over the API with its signed text, by which a person verifies what they approve the end of, and the approvals of its end so far.',
  errors: ['NOT_FOUND', 'SIGNERS_UNAVAILABLE'],
  method: 'GET',
  path: '/dac/v1/policy/stops/{hash}',
  summary: 'Read a stop',
  access: 'read',
  params: z.strictObject({
    hash: z
      .string()
      .max(HASH_MAX)
      .meta({ maxLength: 64, pattern: '^[0-9a-f]{64}$', examples: ['ab'.repeat(32)] }),
  }),
  response: z
    .object({
      hash: policyHash.meta({ description: 'Hash of the signed stop' }),
      is_in_force: z.boolean(),
      sub_account: z
        .string()
        .max(200)
        .nullable()
        .meta({ description: 'null: the stop is for the whole workspace' }),
      by: personId,
      at: z.string().max(TIME_MAX),
      reason: z.string().max(200),
      needs: z.array(needShape).max(LIMITS.approvalGroups),
      signed: z.string().max(LIMITS.statementBytes).meta({
        description: 'The signed statement as JSON text',
      }),
    })
    .meta({ id: 'SignedPolicyStop' }),
  async handler({ caller, params: { hash } }, services: Services) {
    const stop = await findStop(services.database, caller.workspaceId, hash)
    if (!stop)
      throw new ApiError('NOT_FOUND', `hash: no stop ${hash.slice(0, 64)} was sent over the API`, {
        field: 'hash',
      })
    const inForce = await policyInForce(services.signers, caller.workspace)
    const { needs } = inForce ? await countResumes(services, stop, inForce) : { needs: [] }
    const { sub_account, person: by, reason, signed } = stop
    const is_in_force = inForce?.stops.some((each) => each.hash === hash) ?? false
    const at = timeOf(stop.signed_at)
    return { body: { hash, is_in_force, sub_account, by, at, reason, needs, signed } }
  },
})
