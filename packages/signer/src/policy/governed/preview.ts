import type { Network } from '@custody/chains'
import { approvalStatement, carriedApproval, LIMITS, mayReject, type Policy } from '@custody/policy'
import { z } from 'zod'
import { Refusal } from '../../errors.ts'
import type { Intent } from '../../intent/index.ts'
import { signedRequestSchema, type Proven } from '../../intent/request.ts'
import { understand } from '../callers.ts'
import { networkOf, type Context } from '../context.ts'
import {
  actOf,
  ownDestination,
  requestedForward,
  requestedPay,
  requestedStake,
  type Requested,
} from './acts.ts'
import { TRIED_MAX, type Judged, type PolicyJudge } from './policy-judge.ts'

/** Greatest number of windows that are described. */
const WINDOWS_MAX = 100

/** Derivation path of the destination, if it is an own address of the workspace. */
export const ownPathSchema = z.array(z.int().min(0).max(0x7fffffff)).length(3)

/** A caller's request to judge before there is a transaction for it. */
export const previewBodySchema = z.strictObject({
  request: signedRequestSchema,
  to_path: ownPathSchema.optional(),
  /** Fee of the planned transaction, in the smallest unit of the native coin; default 0. */
  fee_max: z
    .string()
    .regex(/^(0|[1-9][0-9]{0,77})$/)
    .optional(),
  /**
   * Of a forwarding rule: amount of the planned forward, in the smallest unit; default: the minimum
   * amount of the rule.
   */
  amount: z
    .string()
    .regex(/^[1-9][0-9]{0,77}$/)
    .optional(),
  /** ID of the rule by which the act is to pass; default: any. */
  via: z.string().min(1).max(64).optional(),
  /** Approvals and rejections of the act. */
  decisions: z
    .array(carriedApproval)
    .max(2 * LIMITS.approvals)
    .optional(),
})
type PreviewBody = z.infer<typeof previewBodySchema>

/**
 * Returns what a request wants that policies judge.
 * @throws Refusal `ACTION_NOT_ALLOWED` for another request
 */
export function requestedBy(proven: Proven, want: Intent): Requested {
  if (want.action === 'pay')
    return requestedPay({ proven, want, step: JSON.stringify(['pay', want.key]) })
  if (want.action === 'stake') return requestedStake({ proven, want })[0]!
  if (want.action === 'forward')
    return requestedForward({ proven, want, step: JSON.stringify(['forward', want.rule_id]) })
  throw new Refusal(
    'ACTION_NOT_ALLOWED',
    'Only payments, refunds, stakes and forwarding rules can be judged before their transaction exists',
  )
}

/**
 * Returns what one forward of an amount requests, of the rule that a request creates.
 * @param amount in the smallest unit; undefined: the minimum amount of the rule
 * @throws Refusal `BAD_REQUEST_FIELD` if the request is no rule, or the rule does not allow the amount
 */
function ofAmount(requested: Requested, amount: string | undefined): Requested {
  if (amount === undefined) return requested
  const { standing } = requested
  const value = BigInt(amount)
  // The fee of a forward may be a part of its smallest amount.
  if (standing === null || value > standing.daily_cap)
    throw new Refusal(
      'BAD_REQUEST_FIELD',
      'amount: must be absent, except for a forwarding rule; then it is at most its daily_cap',
      { field: 'amount' },
    )
  return { ...requested, amount: value }
}

/**
 * `POST /policy/judge`: judges a payment, stake or forwarding rule by the policy in force and by this node's record,
 * before there is a transaction. Records nothing. The signature is judged again.
 * @returns `policy`: null if the workspace has none, and then nothing else; `statement`: the fields
 *   that each approval signs, without those of its signer; `refusal`: why a signature would be refused
 * @throws Refusal if the request is not proven, `ENROLMENT_APPROVAL`, `POLICY_STOPPED` or
 *   `POLICY_BEHIND`
 */
export async function preview(
  context: Context,
  judge: PolicyJudge,
  { request, to_path: path, fee_max: fee = '0', amount, via, decisions = [] }: PreviewBody,
): Promise<Record<string, unknown>> {
  const { proven, want } = await understand(context, request)
  const { workspace, sub_account } = proven.enrolment
  if (judge.hashOf(workspace) === null) return { policy: null }
  const requested = ofAmount(requestedBy(proven, want), amount)
  const network = networkOf(context, requested.asset)
  const own = await ownOf(context, requested, { workspace, path, network })
  const limit = BigInt(network.fee_cap)
  const planned = BigInt(fee)
  const act = actOf(context, requested, {
    network,
    own,
    fee: { max: planned > limit ? limit : planned },
  })
  await judge.prepareOwn(workspace, network.code)
  const judged = judge.preview({ act, via, decisions }, sub_account)
  if (judged === null) return { policy: null }
  const { policy } = judged.governance
  const signer = { decision: 'approve', by: '', key: '', at: 0, expires: 0 } as const
  const {
    kind: _kind,
    decision: _decision,
    by: _by,
    key: _key,
    at: _at,
    expires: _expires,
    ...statement
  } = approvalStatement(policy, act, signer)
  return {
    policy: { number: policy.document.number, hash: policy.hash },
    issued_at: act.issued_at,
    statement,
    ...describe(policy, judged),
  }
}

/** Returns the own address at the path that the platform names; null if it names none. */
export async function ownOf(
  context: Context,
  requested: Requested,
  { workspace, path, network }: { workspace: string; path: number[] | undefined; network: Network },
): Promise<ReturnType<typeof ownDestination>> {
  if (path === undefined) return null
  const key = await context.keyOf(workspace, network.curve)
  return ownDestination({ path, network, key }, [requested])
}

/** Returns an evaluation in the form of a response. */
export function describe(
  policy: Policy,
  { evaluation, decisions: { rejections, ignored }, refusal }: Judged,
): Record<string, unknown> {
  const { effect, via, needs, approvedBy, tried, nearest, fitsAbove, windows } = evaluation
  return {
    effect,
    via,
    needs,
    approved_by: approvedBy,
    rejected_by: rejections.map(({ by }) => by).filter((by) => mayReject(policy, needs, by)),
    ignored,
    tried: tried.slice(0, TRIED_MAX),
    nearest,
    fits_above: fitsAbove,
    windows: windows.slice(0, WINDOWS_MAX),
    refusal: refusal && {
      code: refusal.code,
      message: refusal.message,
      frees_at: refusal.detail['frees_at'] ?? null,
    },
  }
}
