import { Refusal } from '../errors.ts'
import type { PayIntent } from '../intent/pay.ts'
import { assertFeeCap, assertFeeRate } from './cap.ts'
import type { Subject } from './order.ts'

/** Rules 7 and 9: exactly what the caller requested, within the limits of its fee. */
export function assertPays(subject: Subject, want: PayIntent): void {
  assertPayment(subject, want)
  assertFeeCap(subject)
  assertFeeRate(subject, want.fee_rate)
}

/** Rule 7: exactly the recipient, amount and tag that the caller requested. */
export function assertPayment(
  subject: Subject,
  want: Pick<PayIntent, 'asset' | 'destination' | 'amount' | 'tag'>,
): void {
  const { decoded } = subject
  if (decoded.asset !== want.asset) {
    throw new Refusal(
      'ASSET_MISMATCH',
      `The transaction moves ${decoded.asset}, but the caller requested ${want.asset}`,
    )
  }
  const [payment, more] = decoded.payments
  if (!payment || more) throw new Refusal('SHAPE', 'The transaction must make exactly one payment')
  if (payment.address !== want.destination)
    throw new Refusal(
      'DESTINATION_MISMATCH',
      'The transaction pays another address than the caller requested',
    )
  if (payment.amount !== want.amount)
    throw new Refusal(
      'AMOUNT_MISMATCH',
      'The transaction pays another amount than the caller requested',
    )
  if (payment.tag !== want.tag)
    throw new Refusal('TAG_MISMATCH', 'The tag of the transaction differs from the approved tag')
}
