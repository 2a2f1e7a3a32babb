import type { DecodedTransaction } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import type { Proven } from '../../intent/request.ts'
import { assertSigned, decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { ageOf, amender, isSameOwner, seenOf, understand, type Amender } from '../callers.ts'
import { assertCancels, assertReplaces, feeOfReplacement } from '../cancel.ts'
import { assertEffects } from '../gate/effects.ts'
import { decodeDecoded } from '../exclusivity.ts'
import { actsOf, requestedForward, requestedPay, type Requested } from '../governed/acts.ts'
import { voidNameOfRequest } from '../identity.ts'
import type { Cancel, Forward, Order, Pay, Signed, Verdict } from '../order.ts'
import { paymentOf } from '../gate/pay.ts'
import { assertWalletPaths } from '../paths.ts'
import { forwarder } from './forward.ts'
import { payer, type Payer } from './pay.ts'

/** A caller who cancels a payment. `requested`: the payment itself, as a policy judges it. */
export type Canceller = Payer & {
  amend: NonNullable<Payer['amend']>
  voids: string[]
  requested: Requested
}

/**
 * Returns the caller who cancels a payment, and the names that are voided. Payments of a revoked
 * caller can still be cancelled.
 */
export async function canceller(
  context: Context,
  order: Order,
  cancel: Cancel,
): Promise<Canceller> {
  const { of } = cancel
  const taken =
    of.kind === 'forward'
      ? await cancelledForward(context, order, of)
      : await cancelledPay(context, order, of)
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

type Cancelled = Payer & Pick<Canceller, 'requested'>

async function cancelledPay(context: Context, order: Order, pay: Pay): Promise<Cancelled> {
  const by = await payer(context, order, pay, true)
  return { ...by, requested: requestedPay(by) }
}

/** Returns one forward as a payment that its owner cancels. */
async function cancelledForward(
  context: Context,
  order: Order,
  forward: Forward,
): Promise<Cancelled> {
  const { proven, want, step, rule: _, ...request } = await forwarder(context, order, forward, true)
  const { asset, destination, tag } = want
  return {
    ...request,
    proven,
    want: { asset, destination, tag, amount: null, fee_rate: null },
    amend: null,
    name: step,
    step,
    requested: requestedForward({ proven, want, step }),
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

/**
 * Returns the transactions of a payment that may exist on a chain: those that this node has recorded,
 * and those that the order contains with their signatures.
 * @throws Refusal `NOTHING_TO_CANCEL` if there is none, or if one is not of the payment
 */
export async function replacedBy(
  context: Context,
  order: Order,
  { replaces = [] }: Cancel,
  { step, want, proven }: Pick<Payer, 'step' | 'want' | 'proven'>,
): Promise<DecodedTransaction[]> {
  const recorded = recordedPayments(context, step)
  const network = networkOf(context, want.asset)
  const signed: DecodedTransaction[] = []
  for (const { unsigned, signed: raw } of replaces) {
    const own = { ...order, unsigned }
    // A sweep to a payee that is the omnibus address looks like the payment, except for its path.
    assertWalletPaths(own, network, proven.enrolment.sub_account)
    const subject = await decodedOn(context, own, network)
    assertSigned(context, unsigned, raw, subject.key)
    assertEffects(subject, paymentOf(want, proven.enrolment.sub_account))
    signed.push(subject.decoded)
  }
  if (recorded.length + signed.length > 0) return [...recorded, ...signed]
  throw new Refusal(
    'NOTHING_TO_CANCEL',
    'No transaction of the payment is on the record of this node or in "replaces", so a void is sufficient',
  )
}

/** Returns the transactions of a payment on this node's own record, without its cancellations. */
function recordedPayments({ store }: Context, step: string): DecodedTransaction[] {
  return (store.state.steps.get(step) ?? []).flatMap(({ height }) => {
    const entry = store.record.read(height)
    // An entry of a peer's record is the peer's word only.
    if (entry.kind !== 'step' || entry.body.purpose === 'cancel') return []
    return [decodeDecoded(entry.body.decoded)]
  })
}

/**
 * Rule 14: the payment is voided, and a transaction without a payee replaces it on the chain. A fee
 * that is not much higher than the payment's is part of what the payment was allowed and charged, so
 * no policy applies to it; a higher fee is judged like the payment with that fee.
 */
export async function cancel(context: Context, order: Order, purpose: Cancel): Promise<Verdict> {
  const by = await canceller(context, order, purpose)
  const { want, proven, amend, name: _, requested, ...request } = by
  const network = networkOf(context, want.asset)
  const { sub_account } = proven.enrolment
  assertWalletPaths(order, network, sub_account)
  const subject = await decodedOn(context, order, network)
  assertCancels(subject, sub_account, amend.fee_rate)
  const replaced = await replacedBy(context, order, purpose, by)
  assertReplaces(subject, replaced)
  const isPaidFor = subject.decoded.fee_max <= feeOfReplacement(subject, replaced)
  return verdictOf(subject, {
    ...request,
    repeatable: false,
    ...(isPaidFor
      ? { isPaidFor, serves: null }
      : {
          acts: () => actsOf(context, subject, [requested], 'replacement'),
          isAct: true,
          serves: [sub_account],
        }),
  })
}
