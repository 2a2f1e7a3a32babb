import { SIGNED_BODY_BYTES_MAX } from '@custody/request-auth'
import { z } from 'zod'
import { Refusal } from '../../errors.ts'
import { intentOf } from '../../intent/index.ts'
import type { Proven } from '../../intent/request.ts'
import { networkOf, type Context } from '../context.ts'
import { actOf } from './acts.ts'
import type { PolicyJudge } from './policy-judge.ts'
import { describe, ownOf, ownPathSchema, requestedBy } from './preview.ts'

/** A request that was not signed, and the API key that would sign it. */
export const dryRunBodySchema = z.strictObject({
  workspace: z.string().min(1).max(200),
  api_key: z.string().min(1).max(128),
  method: z.string().max(16),
  uri: z.string().max(2048),
  body: z.string().max(SIGNED_BODY_BYTES_MAX),
  to_path: ownPathSchema.optional(),
})
type DryRunBody = z.infer<typeof dryRunBodySchema>

/** Public ID of an act that is only evaluated. No request has it. */
const NO_ID = '00000000-0000-0000-0000-000000000000'

/**
 * Returns an unsigned request in the form of a verified one. It must not leave this module: nothing
 * proves that the caller wants it.
 * @throws Refusal `NOT_ENROLLED` or `WORKSPACE_MISMATCH`
 */
function unproven(
  { store }: Context,
  { workspace, api_key, method, uri, body }: DryRunBody,
): Proven {
  const enrolment = store.state.enrolments.get(api_key)
  if (!enrolment || enrolment.revoked)
    throw new Refusal('NOT_ENROLLED', 'The API key is not enrolled at this node')
  if (enrolment.workspace !== workspace)
    throw new Refusal('WORKSPACE_MISMATCH', 'The API key belongs to another workspace')
  const now = store.seconds()
  return {
    request: { token: '', method, uri, body },
    enrolment,
    nonce: '',
    iat: now,
    exp: now,
    transaction_id: NO_ID,
  }
}

/**
 * `POST /policy/evaluate`: evaluates an unsigned payment, refund or stake by the policy
 * in force and by this node's record. Records nothing, and returns nothing that an approval could
 * sign.
 * @returns `policy`: null if the workspace has none, and then nothing else
 * @throws Refusal if the API key is not enrolled, the request is not valid, `ENROLMENT_APPROVAL`, or
 *   `POLICY_BEHIND`
 */
export async function dryRun(
  context: Context,
  judge: PolicyJudge,
  body: DryRunBody,
): Promise<Record<string, unknown>> {
  const proven = unproven(context, body)
  const inForce = judge.inForce(body.workspace)
  if (inForce === null) return { policy: null }
  const requested = requestedBy(proven, intentOf(context.registry, proven))
  const network = networkOf(context, requested.asset)
  const { workspace, to_path: path } = body
  const own = await ownOf(context, requested, { workspace, path, network })
  const act = actOf(context, requested, { network, own, fee: { max: 0n } })
  await judge.prepareOwn(workspace, network.code)
  try {
    const judged = judge.preview(
      { act, via: undefined, decisions: [] },
      proven.enrolment.sub_account,
    )
    if (judged === null) return { policy: null }
    const { policy } = judged.governance
    return {
      policy: { number: policy.document.number, hash: policy.hash },
      ...describe(policy, judged),
    }
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'POLICY_STOPPED') throw error
    return stopped(inForce, error)
  }
}

/** Returns the response while a stop is in force: every request is refused. */
const stopped = (
  policy: { number: number; hash: string },
  { code, message }: Refusal,
): Record<string, unknown> => ({
  policy,
  effect: 'deny',
  via: null,
  needs: [],
  tried: [],
  windows: [],
  refusal: { code, message, frees_at: null },
})
