import { noSurcharge, type Traits } from '../traits.ts'

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'tagged',
  firstNonce: 'chain',
  nothingExcludes: false,
  expiry: { unit: 'second', aheadMax: 1800 },
  cancellation: null,
  feePayer: false,
  staking: false,
  feeRateDecimals: 0,
  leastRate: () => 100n,
  leastFee: (rate) => rate,
  feeMostAt: null,
  surchargeMost: noSurcharge,
}
