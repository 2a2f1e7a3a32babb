import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../../core/errors.ts'
import { endpoint, CARRIERS } from '../../../core/http/endpoint.ts'
import { policyHash } from '../shapes.ts'
import {
  recordedShape,
  SIGNER_EXAMPLE,
  signerFields,
  signingText,
  verifiedStatement,
  type Services,
} from './signed.ts'
import { advanceStop, findStop, storeStop, undelivered } from './stops.ts'

/** Carries a person's stop to the signer nodes. */
export const stopPolicy = endpoint({
  id: 'stopPolicy',
  tag: 'Policy',
  description: `Stops all signing for the workspace or one sub-account, until the approvals of \`resume\` of the policy document end the stop. ${signingText('custody/policy-stop/v1', ', `sub_account` (null: the whole workspace) and `reason`')} A stop that no node has recorded yet is presented to them again.`,
  errors: ['APPROVAL_REFUSED', 'APPROVAL_CLOSED', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/stop',
  summary: 'Stop signing',
  access: 'write',
  roles: CARRIERS,
  audit: 'entry',
  body: z.strictObject({
    ...signerFields,
    sub_account: text(200)
      .optional()
      .meta({ description: 'Name of the sub-account; absent or null: the whole workspace' }),
    reason: text(200).meta({ description: 'Reason, which is signed' }),
  }),
  example: { ...SIGNER_EXAMPLE, sub_account: null, reason: 'A laptop was stolen' },
  response: z.object({
    hash: policyHash.meta({ description: 'Hash of the stop, which its end names' }),
    sub_account: z.string().max(200).nullable(),
    stopped: recordedShape,
  }),
  async handler({ caller, body }, services: Services) {
    const { sub_account: name, reason, ...signer } = body
    const sub_account = name ?? null
    const { workspace, workspaceId } = caller
    if (sub_account !== null) await assertExists(services, workspaceId, sub_account)
    const verified = await verifiedStatement(services, workspace, signer, () => ({
      kind: 'stop',
      sub_account,
      reason,
    }))
    const { hash, inForce } = verified
    await storeStop(services.database, workspaceId, verified)
    const stop = await findStop(services.database, workspaceId, hash)
    if (stop?.state === 'stopped' && inForce.stops.some((each) => each.hash === hash))
      return { body: { hash, sub_account, stopped: inForce.held } }
    const presented = stop ? await advanceStop(services, stop) : { held: [], refusals: [] }
    if (presented.held.length === 0) throw undelivered(presented)
    return { body: { hash, sub_account, stopped: presented.held } }
  },
})

/**
 * Checks that a workspace has a sub-account. The nodes accept a stop of any name, so a misspelt one
 * would stop nothing.
 * @throws ApiError `INVALID_REQUEST`
 */
async function assertExists(
  { database }: Pick<Services, 'database'>,
  workspace: string,
  name: string,
): Promise<void> {
  const found = await database.one(
    'select 1 from sub_accounts where workspace_id = $1 and name = $2',
    [workspace, name],
  )
  if (found) return
  throw new ApiError('INVALID_REQUEST', `sub_account: the workspace has no sub-account "${name}"`, {
    field: 'sub_account',
  })
}
