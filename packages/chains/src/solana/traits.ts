import { noSurcharge, type Traits } from '../traits.ts'
import { SIGNATURE_FEE } from './build.ts'

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'swept',
  firstNonce: null,
  nothingExcludes: true,
  // A message expires with its recent blockhash after 150 blocks; the decoder rejects a durable
  // nonce.
  expiry: null,
  cancellation: null,
  feePayer: true,
  staking: false,
  feeRateDecimals: 0,
  leastRate: () => SIGNATURE_FEE,
  leastFee: (rate) => rate,
  feeMostAt: null,
  surchargeMost: noSurcharge,
}
