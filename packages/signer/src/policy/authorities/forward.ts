import { sha256hex } from '../../canonical.ts'
import { Refusal } from '../../errors.ts'
import type { ForwardIntent } from '../../intent/forward.ts'
import type { Proven } from '../../intent/request.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { actsOf, requestedForward } from '../governed/acts.ts'
import { chargeOnce } from '../budget.ts'
import { assertWorkspace, seenOf, understand, type CallerContext } from '../callers.ts'
import { assertForwards, assertStands, chargeOfForward, standingRule } from '../forward.ts'
import { endNameOfRule, forwardName, voidNameOfRequest } from '../identity.ts'
import type { Forward, Order, Verdict } from '../order.ts'
import { assertWalletPaths } from '../paths.ts'

/** One forward by a caller's standing rule. */
export type Forwarder = CallerContext &
  Pick<Verdict, 'rule'> & { proven: Proven; want: ForwardIntent; step: string }

/**
 * Returns the standing rule of a forward and its owner.
 * @param revokedToo whether the request of a revoked caller is accepted, as for a cancellation
 */
export async function forwarder(
  context: Context,
  order: Order,
  purpose: Forward,
  revokedToo = false,
): Promise<Forwarder> {
  const { proven, want } = await understand(context, purpose.rule, revokedToo)
  if (want.action !== 'forward')
    throw new Refusal('ACTION_NOT_ALLOWED', 'The signed request does not create a forwarding rule')
  assertWorkspace(proven, order)
  const { workspace, sub_account, api_key } = proven.enrolment
  const { store, identities } = context
  const step = forwardName(want.rule_id, purpose.id)
  return {
    proven,
    want,
    step,
    intent: {
      key: step,
      content: sha256hex(JSON.stringify([step, want.content])),
      transaction_id: purpose.id,
    },
    seen: [seenOf(context, proven, want)],
    callers: [api_key],
    assertAge: () => {
      assertStands({
        state: store.state,
        identities,
        proven,
        rule: want,
        receipts: purpose.receipts ?? [],
        now: store.seconds(),
      })
    },
    voidNames: [
      want.key,
      voidNameOfRequest(api_key, proven.nonce),
      endNameOfRule(workspace, sub_account, want.rule_id),
      step,
    ],
    rule: standingRule(proven, want),
  }
}

/**
 * Rule 13: permits a payment to the rule's destination, within its cap and until it expires. Each
 * forward is one payment.
 */
export async function forward(context: Context, order: Order, purpose: Forward): Promise<Verdict> {
  const { proven, want, ...request } = await forwarder(context, order, purpose)
  const { sub_account } = proven.enrolment
  const network = networkOf(context, want.asset)
  assertWalletPaths(order, network, sub_account)
  const subject = await decodedOn(context, order, network)
  assertForwards(subject, want)
  const fee = chargeOnce(subject, sub_account, subject.decoded.fee_max, context.budgetFeeCaps)
  return verdictOf(subject, {
    ...request,
    repeatable: false,
    charges: [chargeOfForward(subject, want), fee],
    acts: () =>
      actsOf(context, subject, [requestedForward({ proven, want, step: request.step })], 'act'),
    isAct: true,
    serves: [sub_account],
  })
}
