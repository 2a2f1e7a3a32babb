import { cardano, parseAmount } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { FEE_RATE_DECIMALS } from '../intent/pay.ts'
import type { Subject } from './order.ts'

/** Rule 9, the node's own cap. */
export function assertFeeCap({ decoded, network }: Subject): void {
  if (decoded.fee_max > BigInt(network.fee_cap)) {
    throw new Refusal('FEE_CAP', `The fee ${decoded.fee_max} is above the cap ${network.fee_cap}`)
  }
}

/** vbytes of the largest change output: what a wallet saves when it leaves change out. */
const CHANGE_VBYTES = 43n

/**
 * Rule 9, the caller's own limit, strict. UTXO: fee ≤ rate × signed virtual size; where no change came back, the
 * surplus may be as large as a change output would have cost and its dust limit, for so much cannot be returned.
 * Cardano: fee ≤ rate × size + the chain's constant part, and the same for change that the ledger would not take.
 * @param feeRate the caller's, scaled by 10^FEE_RATE_DECIMALS
 */
export function assertFeeRate({ decoded, network }: Subject, feeRate: string | null): void {
  if (feeRate === null) return
  const limit = BigInt(feeRate)
  const scale = 10n ** BigInt(FEE_RATE_DECIMALS)
  if (decoded.vsize !== null && decoded.fee_constant !== undefined) {
    const surplus = decoded.change === null ? cardano.surplusMost(limit / scale) : 0n
    if (decoded.fee_max * scale > limit * (BigInt(decoded.vsize) + cardano.EDGE_BYTES) + (BigInt(decoded.fee_constant) + surplus) * scale) {
      throw new Refusal('FEE_RATE', "The fee is above the caller's fee_rate")
    }
    return
  }
  if (decoded.vsize !== null) {
    const surplus = decoded.change === null ? CHANGE_VBYTES * limit + BigInt(network.utxo?.dust ?? 0) * scale : 0n
    if (decoded.fee_max * scale > limit * BigInt(decoded.vsize) + surplus) {
      throw new Refusal('FEE_RATE', "The fee is above the caller's fee_rate")
    }
    return
  }
  if (parseAmount(decoded.fee_rate, FEE_RATE_DECIMALS) > limit) {
    throw new Refusal('FEE_RATE', `The fee rate ${decoded.fee_rate} is above the caller's`)
  }
}
