import { noSurcharge, type Traits } from '../traits.ts'

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'tagged',
  firstNonce: 'chain',
  nothingExcludes: false,
  // It takes 3 to 4 seconds to close a ledger. A round of the consensus takes two seconds at least
  // (rippled: ledgerMIN_CLOSE); local chains close ledgers when they are asked to.
  expiry: { unit: 'ledger', aheadMax: 100_000, perSecondMax: { mainnet: 0.5, local: 2 } },
  cancellation: null,
  feePayer: false,
  staking: false,
  feeRateDecimals: 0,
  leastRate: () => 10n,
  leastFee: (rate) => rate,
  feeMostAt: null,
  surchargeMost: noSurcharge,
}
