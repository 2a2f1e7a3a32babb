import { CHANGE_INDEX } from '../derivation.ts'
import { noSurcharge, type Traits } from '../traits.ts'

/** vbytes of the largest change output: what a wallet saves when it leaves change out. */
const CHANGE_VBYTES = 43n

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'spendable',
  firstNonce: null,
  nothingExcludes: false,
  expiry: null,
  cancellation: { index: CHANGE_INDEX, moves: 'everything' },
  feePayer: false,
  staking: false,
  feeRateDecimals: 3,
  leastRate: (network) => BigInt(network.utxo?.min_fee_rate ?? 1) * 1000n,
  // The smallest transfer has 110 vbytes.
  leastFee: (rate) => (rate * 110n) / 1000n,
  // Where no change came back, as much again as a change output would have cost and its dust limit:
  // so much cannot be returned.
  feeMostAt: (network, { vsize, change }, rate, scale) => {
    const surplus =
      change === null ? CHANGE_VBYTES * rate + BigInt(network.utxo?.dust ?? 0) * scale : 0n
    return BigInt(vsize as number) * rate + surplus
  },
  surchargeMost: noSurcharge,
}
