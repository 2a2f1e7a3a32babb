import { Refusal } from '../../errors.ts'
import type { Proven } from '../../intent/request.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { ageOf, amender, isSameOwner, seenOf, understand, type Amender } from '../callers.ts'
import { assertCancels } from '../cancel.ts'
import { voidNameOfRequest } from '../identity.ts'
import type { Cancel, Forward, Order, Signed, Verdict } from '../order.ts'
import { assertWalletPaths } from '../paths.ts'
import { forwarder } from './forward.ts'
import { payer, type Payer } from './pay.ts'

/**
 * Returns the caller who cancels a payment, and the names that are voided. Payments of a revoked
 * caller can still be cancelled.
 */
export async function canceller(
  context: Context,
  order: Order,
  cancel: Cancel,
): Promise<Payer & { voids: string[] }> {
  const { of } = cancel
  const taken =
    of.kind === 'forward'
      ? await cancelledForward(context, order, of)
      : await payer(context, order, of, true)
  const { amend, seen, assertAge } =
    of.kind === 'forward'
      ? await forwardAmender(context, cancel, taken.proven, of)
      : await amender(context, cancel, taken.proven, 'cancel')
  return {
    ...taken,
    want: { ...taken.want, fee_rate: amend.fee_rate },
    amend,
    seen: [...taken.seen.slice(0, 1), seen],
    callers: [seen.api_key],
    assertAge,
    voidNames: [voidNameOfRequest(seen.api_key, seen.nonce)],
    voids: of.kind === 'forward' ? [taken.name] : taken.voidNames.slice(0, 2),
  }
}

/** Returns one forward as a payment that its owner cancels. */
async function cancelledForward(context: Context, order: Order, forward: Forward): Promise<Payer> {
  const { proven, want, step, rule: _, ...request } = await forwarder(context, order, forward, true)
  return {
    ...request,
    proven,
    want: { asset: want.asset, fee_rate: null },
    amend: null,
    name: step,
    step,
  }
}

/** A forward is cancelled by its own cancellation, or by the deletion of its rule. */
async function forwardAmender(
  context: Context,
  signed: Signed,
  about: Proven,
  forward: Forward,
): Promise<Amender> {
  const { proven, want } = await understand(context, signed.request)
  if (want.action !== 'end-forward')
    return amender(context, signed, { ...about, transaction_id: forward.id }, 'cancel')
  if (want.rule_id !== about.transaction_id || !isSameOwner(proven, about)) {
    throw new Refusal('ACTION_NOT_ALLOWED', 'The signed request deletes a different rule')
  }
  return {
    amend: { key: want.key, fee_rate: null },
    seen: seenOf(context, proven, want),
    assertAge: ageOf(context, proven, want.content, signed.receipts),
  }
}

/** Rule 14: the payment is voided, and a transaction without a payee replaces it on the chain. */
export async function cancel(context: Context, order: Order, purpose: Cancel): Promise<Verdict> {
  const { want, proven, amend, name: _, ...request } = await canceller(context, order, purpose)
  const network = networkOf(context, want.asset)
  assertWalletPaths(order, network, proven.enrolment.sub_account)
  const subject = await decodedOn(context, order, network)
  assertCancels(subject, proven.enrolment.sub_account, amend?.fee_rate ?? null)
  return verdictOf(subject, { ...request, repeatable: false, serves: null })
}
