import { noSurcharge, type Refusals, type Traits } from '../traits.ts'

/** Result codes of `sendTransaction`. */
const REFUSALS: Refusals = [
  ['price', /^txInsufficientFee/],
  ['conflict', /^txBadSeq/],
  ['funds', /^txInsufficientBalance/],
  ['expired', /^tx(?:TooLate|TooEarly)/],
]

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'tagged',
  firstNonce: 'chain',
  nothingExcludes: false,
  expiry: { unit: 'second', aheadMax: 1800 },
  cancellation: null,
  feePayer: false,
  staking: false,
  contractPayments: 'listed',
  feeRateDecimals: 0,
  leastRate: () => 100n,
  leastFee: (rate) => rate,
  feeMostAt: null,
  refusals: REFUSALS,
  surchargeMost: noSurcharge,
}
