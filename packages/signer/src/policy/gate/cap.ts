import { parseAmount, traitsOf } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import { FEE_RATE_DECIMALS } from '../../intent/pay.ts'
import type { Subject } from '../order.ts'

/**
 * Rule 9: the node's own fee cap, and the maximum gas of a transfer. Without the latter, a low
 * price would allow so much gas within the cap that a receiver's contract could burn it.
 */
export function assertFeeCap({ decoded, network }: Subject): void {
  const gasMost = traitsOf(network).gasMost?.(network)
  if (gasMost !== undefined && decoded.gas_limit !== null && decoded.gas_limit > gasMost) {
    throw new Refusal(
      'FEE_CAP',
      `The gas limit ${decoded.gas_limit} is above ${gasMost}, the maximum for one transfer on ${network.code}`,
    )
  }
  if (decoded.fee_max > BigInt(network.fee_cap)) {
    throw new Refusal('FEE_CAP', `The fee ${decoded.fee_max} is above the cap ${network.fee_cap}`)
  }
}

/**
 * Rule 9: the caller's own limit, without tolerance, for the rate in the transaction, or for the
 * maximum cost at its size.
 * @param feeRate the caller's limit, scaled by 10^FEE_RATE_DECIMALS
 */
export function assertFeeRate({ decoded, network }: Subject, feeRate: string | null): void {
  if (feeRate === null) return
  const limit = BigInt(feeRate)
  const scale = 10n ** BigInt(FEE_RATE_DECIMALS)
  const { feeMostAt } = traitsOf(network)
  if (feeMostAt) {
    if (decoded.fee_max * scale > feeMostAt(network, decoded, limit, scale)) {
      throw new Refusal(
        'FEE_RATE',
        "The fee is above the maximum that the caller's fee_rate allows",
      )
    }
  } else if (parseAmount(decoded.fee_rate, FEE_RATE_DECIMALS) > limit) {
    throw new Refusal('FEE_RATE', `The fee rate ${decoded.fee_rate} is above the caller's fee_rate`)
  }
}
