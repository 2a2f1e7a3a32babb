import { noSurcharge, type Traits } from '../traits.ts'

/** What the chain takes at least, in the smallest unit. */
export const LEAST_FEE = 1000n

/**
 * In what the family differs: each line is a question that `traits.ts` puts, and nobody else is
 * asked.
 */
export const traits: Traits = {
  feesFrom: 'wallet',
  // A deposit address is an account of its own, which is emptied to the omnibus address.
  deposits: 'swept',
  firstNonce: 'zero',
  nothingExcludes: false,
  // An end that platform and nodes can measure is what proves a transaction dead. Room for clocks
  // that differ.
  expiry: { unit: 'second', aheadMax: 1800 },
  cancellation: null,
  feePayer: false,
  staking: false,
  feeRateDecimals: 0,
  leastRate: () => LEAST_FEE,
  // One payment is one operation: the rate is its price.
  leastFee: (rate) => rate,
  feeMostAt: null,
  surchargeMost: noSurcharge,
}
