import { addressAt, traitsOf } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { assertFeeCap, assertFeeRate } from './cap.ts'
import type { Subject } from './order.ts'

/**
 * Rule 14: the transaction that replaces a cancelled payment has no payee. It goes to the payer's
 * own wallet, and transfers either nothing with the payment's nonce, or the total of its inputs
 * less the fee.
 */
export function assertCancels(subject: Subject, subAccount: number, feeRate: string | null): void {
  const { decoded, network, key } = subject
  const { cancellation } = traitsOf(network)
  if (!cancellation)
    throw new Refusal(
      'ACTION_NOT_ALLOWED',
      `A signed transaction cannot be replaced on ${network.code}`,
    )
  if (decoded.asset !== network.native_asset)
    throw new Refusal('ASSET_MISMATCH', 'A cancellation must move the native coin')
  const [payment, more] = decoded.payments
  if (!payment || more || decoded.change !== null)
    throw new Refusal('SHAPE', 'A cancellation must have one output')
  if (payment.tag !== null) throw new Refusal('TAG_MISMATCH', 'A cancellation must have no tag')
  const own = addressAt(network, key, [subAccount, network.chain_index, cancellation.index])
  if (payment.address !== own)
    throw new Refusal('DESTINATION_MISMATCH', "A cancellation must pay the sender's own wallet")
  if (cancellation.moves === 'nothing' && payment.amount !== 0n)
    throw new Refusal('AMOUNT_MISMATCH', 'A cancellation must move no value')
  assertFeeCap(subject)
  assertFeeRate(subject, feeRate)
}
