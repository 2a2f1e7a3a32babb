import { noSurcharge, type Traits } from '../traits.ts'

/** Each line is a question that the family must answer; ../traits.ts says what each asks. */
export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'swept',
  accountRules: false,
  firstNonce: 'zero',
  nothingExcludes: false,
  // An end that platform and nodes can measure is what proves a transaction dead.
  expiry: null,
  cancellation: null,
  feePayer: false,
  staking: false,
  feeRateDecimals: 0,
  leastRate: () => 1n,
  leastFee: (rate) => rate,
  feeMostAt: null,
  surchargeMost: noSurcharge,
}
