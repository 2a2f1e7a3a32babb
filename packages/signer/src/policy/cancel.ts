import { addressAt, traitsOf, type DecodedTransaction } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { assertFeeRate } from './gate/cap.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Subject } from './order.ts'

/**
 * Rule 14: the transaction that replaces a cancelled payment has no payee. It goes to the payer's
 * own wallet, and transfers either nothing with the payment's nonce, or the total of its inputs
 * less the fee.
 */
export function assertCancels(
  subject: Subject,
  subAccount: number,
  feeRate: string | null,
): asserts subject is Covered {
  const { decoded, network, key } = subject
  const { cancellation } = traitsOf(network)
  if (!cancellation)
    throw new Refusal(
      'ACTION_NOT_ALLOWED',
      `A signed transaction cannot be replaced on ${network.code}`,
    )
  if (decoded.change !== null) throw new Refusal('SHAPE', 'A cancellation must have one output')
  assertCovered(subject, {
    payer: subAccount,
    does: {
      asset: network.native_asset,
      address: addressAt(network, key, [subAccount, network.chain_index, cancellation.index]),
      payee: "the sender's own wallet",
      tag: null,
      amount: cancellation.moves === 'nothing' ? 0n : null,
    },
  })
  assertFeeRate(subject, feeRate)
}

/** Ratio of the largest fee of a cancellation to that of the payment that it replaces. */
const FEE_RATIO = [5n, 4n] as const

/**
 * Rule 14: returns the largest fee of a cancellation that the payment has paid for already: enough to
 * replace it, whatever a policy allows.
 * @param replaced transactions of the payment
 */
export function feeOfReplacement(
  { decoded, network }: Subject,
  replaced: readonly DecodedTransaction[],
): bigint {
  const most = largestFee(replaced)
  const byRatio = (most * FEE_RATIO[0]) / FEE_RATIO[1]
  const byIncrement = most + (traitsOf(network).cancellation?.increment(network, decoded) ?? 0n)
  return byRatio > byIncrement ? byRatio : byIncrement
}

export const largestFee = (transactions: readonly DecodedTransaction[]): bigint =>
  transactions.reduce((most, { fee_max: fee }) => (fee > most ? fee : most), 0n)

/**
 * Rule 14: a cancellation uses the inputs or the nonce of a transaction of the payment, all of them
 * and no others. Therefore it excludes that transaction, and every other cancellation of it.
 */
export function assertReplaces(
  { decoded }: Subject,
  replaced: readonly DecodedTransaction[],
): void {
  const used = new Set(decoded.consumes)
  const known = new Set(replaced.flatMap(({ consumes }) => consumes))
  const isComplete = replaced.some(
    ({ consumes }) => consumes.length > 0 && consumes.every((each) => used.has(each)),
  )
  if (!isComplete || decoded.consumes.some((each) => !known.has(each))) {
    throw new Refusal(
      'NOT_EXCLUSIVE',
      'A cancellation must use all inputs, or the nonce, of a transaction of the payment, and no others',
    )
  }
}
