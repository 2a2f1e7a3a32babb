import { noSurcharge, type Traits } from '../traits.ts'

/** What a network's family says of it here, nobody else asks about: each line is a question to be answered. */
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
