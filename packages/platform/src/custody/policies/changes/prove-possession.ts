import { carriedApproval } from '@custody/policy'
import { z } from 'zod'
import { assertionShape } from '../../approvals/present.ts'
import { endpoint, PROPOSERS } from '../../../core/http/endpoint.ts'
import { pathId } from '../../../core/http/schemas.ts'
import { findChange } from './change.ts'
import { collectedOf } from './collected.ts'
import { provePossession } from './decide-change.ts'
import type { Services } from './progress.ts'
import { ownChange } from './read-change.ts'
import { changeDetailShape, presentChangeDetail } from './shapes.ts'

/** Stores the proof that a person holds a new key of a proposed document. */
export const provePolicyKey = endpoint({
  id: 'provePolicyKey',
  tag: 'Policy',
  description:
    'Stores the proof that a person holds a key that a proposed document adds. `signature` is made with this key over `custody/policy-possession/v1`, a line feed, and the canonical JSON (RFC 8785) of the fields `v`, `mode`, `workspace` and `nodes` of `statement`, with `by`, `key`, and `policy`, which is `next` of `statement`. A passkey signs the SHA-256 of the same bytes as its challenge, and its assertion is sent as `passkey` instead. `missing` of the change names the keys whose proof is missing.',
  errors: ['NOT_FOUND', 'APPROVAL_CLOSED', 'APPROVAL_REFUSED', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/changes/{id}/possessions',
  summary: 'Prove that a person holds a new key',
  access: 'write',
  roles: PROPOSERS,
  audit: { not: 'it changes nothing that applies' },
  params: z.strictObject({ id: pathId }),
  body: carriedApproval
    .pick({ by: true, key: true, signature: true })
    .extend({ passkey: assertionShape.optional() }),
  example: {
    by: 'dave',
    key: 'k1',
    signature:
      'kq3mT0bPzV7m0cB7aF2r1sXo9pQeYw8uG5hJ4nL6dKcRtZvM1iN0oPxS3fUyE2aWgHjB7kQ9lDzC5vXbN8mTAw==',
  },
  response: changeDetailShape,
  async handler({ caller, params, body }, services: Services) {
    const change = await ownChange(services.database, caller, params.id)
    await provePossession(services, change, body)
    const after = (await findChange(services.database, caller.workspaceId, change.id)) ?? change
    return { body: presentChangeDetail(after, await collectedOf(services.database, after)) }
  },
})
