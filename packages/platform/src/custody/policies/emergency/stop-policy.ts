import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { endpoint } from '../../../core/http/endpoint.ts'
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
  body: z.strictObject({
    ...signerFields,
    sub_account: text(200)
      .nullable()
      .meta({ description: 'Name of the sub-account; null: the whole workspace' }),
    reason: text(200).meta({ description: 'Reason, which is signed' }),
  }),
  example: { ...SIGNER_EXAMPLE, sub_account: null, reason: 'A laptop was stolen' },
  response: z.object({
    hash: policyHash.meta({ description: 'Hash of the stop, which its end names' }),
    sub_account: z.string().max(200).nullable(),
    stopped: recordedShape,
  }),
  async handler({ caller, body: { sub_account, reason, ...signer } }, services: Services) {
    const { workspace, workspaceId } = caller
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
