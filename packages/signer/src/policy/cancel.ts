import { addressAt, CHANGE_INDEX, OMNIBUS_INDEX } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { assertFeeCap, assertFeeRate } from './cap.ts'
import type { Subject } from './order.ts'

/**
 * Rule 14: what takes a cancelled payment's place pays nobody. EVM: no value, to the sender itself, under the same
 * nonce. UTXO: all that its inputs hold, less the fee, to the wallet's own change address.
 */
export function assertCancels(subject: Subject, subAccount: number, feeRate: string | null): void {
  const { decoded, network, key } = subject
  if (network.family !== 'evm' && network.family !== 'utxo') {
    throw new Refusal('ACTION_NOT_ALLOWED', `Nothing takes the place of a signed transaction on ${network.code}`)
  }
  if (decoded.asset !== network.native_asset) throw new Refusal('ASSET_MISMATCH', 'A cancellation moves the native coin')
  const [payment, more] = decoded.payments
  if (!payment || more || decoded.change !== null) throw new Refusal('SHAPE', 'A cancellation has one output')
  if (payment.tag !== null) throw new Refusal('TAG_MISMATCH', 'A cancellation carries no tag')
  const own = addressAt(network, key, [subAccount, network.chain_index, network.family === 'evm' ? OMNIBUS_INDEX : CHANGE_INDEX])
  if (payment.address !== own) throw new Refusal('DESTINATION_MISMATCH', "A cancellation pays the sender's own wallet only")
  if (network.family === 'evm' && payment.amount !== 0n) throw new Refusal('AMOUNT_MISMATCH', 'A cancellation moves no value')
  assertFeeCap(subject)
  assertFeeRate(subject, feeRate)
}
