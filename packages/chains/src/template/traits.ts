import { noSurcharge, type Refusals, type Traits } from '../traits.ts'

/** Minimum fee that the chain accepts, in the smallest unit. */
export const LEAST_FEE = 1000n

/**
 * Properties in which this family differs from others. Each is described in `traits.ts`, and the
 * platform and the signer nodes read them only from here.
 */
const REFUSALS: Refusals = []

export const traits: Traits = {
  feesFrom: 'wallet',
  // Each deposit address is an account of its own, which is emptied to the omnibus address.
  deposits: 'swept',
  firstNonce: 'zero',
  nothingExcludes: false,
  // An expiry that both platform and nodes can measure proves that a transaction is dead. The
  // maximum leaves a margin for clock differences.
  expiry: { unit: 'second', aheadMax: 1800 },
  cancellation: null,
  feePayer: false,
  staking: false,
  contractPayments: 'listed',
  feeRateDecimals: 0,
  leastRate: () => LEAST_FEE,
  // A payment consists of one operation, so the rate is its fee.
  leastFee: (rate) => rate,
  feeMostAt: null,
  refusals: REFUSALS,
  surchargeMost: noSurcharge,
}
