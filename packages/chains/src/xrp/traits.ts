import { noSurcharge, type Traits } from '../traits.ts'

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'tagged',
  firstNonce: 'chain',
  nothingExcludes: false,
  // Closing a ledger takes 3 to 4 seconds. A consensus round takes at least two seconds (rippled:
  // ledgerMIN_CLOSE). Local chains close ledgers on request.
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
