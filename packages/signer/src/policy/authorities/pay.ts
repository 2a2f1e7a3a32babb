import { Refusal } from '../../errors.ts'
import type { PayIntent } from '../../intent/pay.ts'
import type { Proven } from '../../intent/request.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import {
  ageOf,
  amender,
  assertWorkspace,
  seenOf,
  understand,
  type Amender,
  type CallerContext,
} from '../callers.ts'
import { actsOf, requestedPay } from '../governed/acts.ts'
import { voidNameOfRequest } from '../identity.ts'
import type { Order, Pay, Verdict } from '../order.ts'
import { assertWalletPaths } from '../paths.ts'
import { assertPays, type Wanted } from '../gate/pay.ts'

/**
 * A payment that a caller requested, with the changes of later signed requests. `name`: name of the
 * intent; `step`: name of its payment.
 */
export type Payer = CallerContext & {
  proven: Proven
  want: Wanted & Pick<PayIntent, 'fee_rate'>
  amend: Amender['amend'] | null
  name: string
  step: string
}

/** Returns the payment that a caller requested; a signed speed-up replaces its fee limit. */
export async function payer(
  context: Context,
  order: Order,
  pay: Pay,
  revokedToo = false,
): Promise<Payer & { want: PayIntent }> {
  const { proven, want } = await understand(context, pay.request, revokedToo)
  if (want.action !== 'pay')
    throw new Refusal('ACTION_NOT_ALLOWED', 'The signed request is not for a payment')
  assertWorkspace(proven, order)
  const { api_key } = proven.enrolment
  const faster = pay.speed_up && (await amender(context, pay.speed_up, proven, 'speed-up'))
  return {
    proven,
    name: want.key,
    step: JSON.stringify(['pay', want.key]),
    want: faster ? { ...want, fee_rate: faster.amend.fee_rate } : want,
    amend: faster?.amend ?? null,
    intent: { key: want.key, content: want.content, transaction_id: proven.transaction_id },
    seen: [seenOf(context, proven, want), ...(faster ? [faster.seen] : [])],
    callers: [api_key, ...(faster ? [faster.seen.api_key] : [])],
    // The later request proves that the caller still wants the payment.
    assertAge: faster?.assertAge ?? ageOf(context, proven, want.content, pay.receipts),
    voidNames: [
      want.key,
      voidNameOfRequest(api_key, proven.nonce),
      ...(faster ? [voidNameOfRequest(faster.seen.api_key, faster.seen.nonce)] : []),
    ],
  }
}

/**
 * Rules 2 to 9: permits exactly the payment that the caller requested, from the caller's wallet.
 */
export async function pay(context: Context, order: Order, purpose: Pay): Promise<Verdict> {
  const {
    proven,
    want,
    amend: _amend,
    name: _name,
    ...request
  } = await payer(context, order, purpose)
  const network = networkOf(context, want.asset)
  if (order.unsigned.network !== network.code)
    throw new Refusal(
      'NETWORK_MISMATCH',
      `The asset belongs to ${network.code}, and the transaction is on another network`,
    )
  assertWalletPaths(order, network, proven.enrolment.sub_account)
  const subject = await decodedOn(context, order, network)
  assertPays(subject, want, proven.enrolment.sub_account)
  return verdictOf(subject, {
    ...request,
    repeatable: false,
    acts: () =>
      actsOf(context, subject, [requestedPay({ proven, want, step: request.step })], 'act'),
    isAct: true,
    serves: [proven.enrolment.sub_account],
  })
}
