import type { PayIntent } from '../../intent/pay.ts'
import { assertFeeRate } from './cap.ts'
import { assertCovered, type Cover } from './effects.ts'
import type { Covered, Subject } from '../order.ts'

/** Rules 7 and 9: exactly what the caller requested, within the limits of its fee. */
export function assertPays(
  subject: Subject,
  want: Wanted & Pick<PayIntent, 'fee_rate'>,
  payer: number,
): asserts subject is Covered {
  assertCovered(subject, paymentOf(want, payer))
  assertFeeRate(subject, want.fee_rate)
}

/** A payment that a caller requested. `amount`: null: of a forward, whose rule does not fix it. */
export type Wanted = Pick<PayIntent, 'asset' | 'destination' | 'tag'> & { amount: bigint | null }

/**
 * Rule 7: exactly the recipient, amount and tag that the caller requested.
 * @param payer index of the caller's sub-account
 */
export const paymentOf = ({ asset, destination, amount, tag }: Wanted, payer: number): Cover => ({
  payer,
  does: { asset, address: destination, payee: 'the destination of the request', tag, amount },
})
