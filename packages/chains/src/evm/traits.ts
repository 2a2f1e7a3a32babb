import { OMNIBUS_INDEX } from '../derivation.ts'
import type { Traits } from '../traits.ts'
import { gasMost, NATIVE_GAS } from './gas.ts'

/**
 * Divisor of the fee cap: publishing on the parent chain may cost at most this fraction of it, on
 * networks with a fee oracle.
 */
const L1_SHARE = 10n

export const traits: Traits = {
  feesFrom: 'tank',
  deposits: 'swept',
  firstNonce: 'zero',
  nothingExcludes: false,
  expiry: null,
  cancellation: {
    index: OMNIBUS_INDEX,
    moves: 'nothing',
    // Nodes require at most 12.5 % more, which the percentage covers.
    increment: () => 0n,
  },
  feePayer: false,
  staking: false,
  feeRateDecimals: 9,
  leastRate: () => 1n,
  // Fee of the smallest transfer. On networks where publishing is part of the gas, each transfer
  // costs more.
  leastFee: (rate) => rate * NATIVE_GAS,
  gasMost,
  feeMostAt: null,
  surchargeMost: (network) =>
    network.l1_fee_oracle === undefined ? 0n : BigInt(network.fee_cap) / L1_SHARE,
}
