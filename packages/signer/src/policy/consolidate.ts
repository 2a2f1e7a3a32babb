import { addressAt, traitsOf } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { ConsolidateIntent } from '../intent/consolidate.ts'
import { FEE_RATE_DECIMALS } from '../intent/pay.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Subject } from './order.ts'

/**
 * Rule 18: exactly one output, to the wallet's own change address, from as many inputs as one
 * consolidation may have, at most at the caller's fee rate. The paths of the inputs are checked before
 * (`assertWalletPaths`).
 * @throws Refusal `SHAPE`, `FEE_RATE`, or those of the gate
 */
export function assertConsolidates(
  subject: Subject,
  { sub_account, fee_rate }: Pick<ConsolidateIntent, 'sub_account' | 'fee_rate'>,
): asserts subject is Covered {
  const { decoded, network, key, order } = subject
  const { consolidation } = traitsOf(network)
  if (!consolidation || decoded.vsize === null)
    throw new Refusal('ACTION_NOT_ALLOWED', `Coins of ${network.code} cannot be merged`)
  if (decoded.change !== null) throw new Refusal('SHAPE', 'A consolidation must have one output')
  const { inputsLeast, inputsMost, index } = consolidation
  const inputs = order.unsigned.inputs.length
  if (inputs < inputsLeast || inputs > inputsMost)
    throw new Refusal(
      'SHAPE',
      `A consolidation must have ${inputsLeast} to ${inputsMost} inputs, and has ${inputs}`,
    )
  assertCovered(subject, {
    payer: sub_account,
    does: {
      asset: network.native_asset,
      address: addressAt(network, key, [sub_account, network.chain_index, index]),
      payee: "the wallet's own change address",
      tag: null,
      amount: null,
    },
  })
  // Without the allowance that a payment has for change that would be dust: a consolidation has none.
  const scale = 10n ** BigInt(FEE_RATE_DECIMALS)
  if (decoded.fee_max * scale > BigInt(decoded.vsize) * BigInt(fee_rate))
    throw new Refusal(
      'FEE_RATE',
      "The fee is above the maximum that the caller's max_fee_rate allows",
    )
}
