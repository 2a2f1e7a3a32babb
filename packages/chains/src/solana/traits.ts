import { noSurcharge, type Refusals, type Traits } from '../traits.ts'
import { SIGNATURE_FEE } from './build.ts'

/** Messages of `sendTransaction` and its preflight simulation. */
const REFUSALS: Refusals = [
  ['known', /already (?:been )?processed/i],
  ['expired', /blockhash not found/i],
  ['funds', /insufficient (?:funds|lamports)|no record of a prior credit/i],
  ['node', /node is (?:behind|unhealthy)/i],
]

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
  contractPayments: 'listed',
  feeRateDecimals: 0,
  leastRate: () => SIGNATURE_FEE,
  leastFee: (rate) => rate,
  feeMostAt: null,
  refusals: REFUSALS,
  surchargeMost: noSurcharge,
}
