import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import { endpoint, PROPOSERS } from '../../../core/http/endpoint.ts'
import { text } from '../../../core/http/schemas.ts'
import { DOCUMENT_EXAMPLE, documentShape } from '../shapes.ts'
import { collectedOf } from './collected.ts'
import { proposeChange, type Services } from './propose-change.ts'
import { changeDetailShape, COMMENT_MAX, presentChangeDetail } from './shapes.ts'

const POSSESSIONS_MAX = LIMITS.people * LIMITS.keysOfPerson

/** Proposes the next policy document of the workspace. */
export const createPolicyChange = endpoint({
  id: 'createPolicyChange',
  tag: 'Policy',
  description:
    'Proposes the next policy document of the workspace. Nothing changes until the people whom the document in force requires have approved it with `POST /dac/v1/approvals/{id}`, and until its delay has passed. `statement` is what each approval signs, and `missing` names the new keys whose holders must send a proof of possession. A document that is already proposed returns the existing change. A workspace has at most 4 changes that are not decided; each one expires after six days.',
  errors: ['POLICY_CHANGE_LIMIT', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/changes',
  summary: 'Propose a policy change',
  access: 'write',
  roles: PROPOSERS,
  audit: 'entry',
  body: z.strictObject({
    document: documentShape,
    possessions: z
      .array(z.looseObject({}).meta({ maxProperties: 3 }))
      .max(POSSESSIONS_MAX)
      .optional()
      .meta({
        description: 'Proofs of possession of new keys, as a policy file contains them',
        examples: [[]],
      }),
    comment: text(COMMENT_MAX).meta({ description: 'Why the policy changes' }),
  }),
  example: { document: DOCUMENT_EXAMPLE, comment: 'Raise the daily limit' },
  response: changeDetailShape,
  async handler({ caller, body }, services: Services) {
    const change = await proposeChange(services, {
      workspaceId: caller.workspaceId,
      workspace: caller.workspace,
      document: body.document,
      possessions: body.possessions ?? [],
      comment: body.comment,
      by: caller.apiKey,
    })
    const collected = await collectedOf(services.database, change)
    return { body: presentChangeDetail(change, collected) }
  },
})
