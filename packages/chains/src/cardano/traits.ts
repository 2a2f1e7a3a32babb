import { noSurcharge, type Refusals, type Traits } from '../traits.ts'
import { EDGE_BYTES, PARAMETERS, surplusMost } from './build.ts'

/** Errors of the ledger rules, as cardano-node and Blockfrost return them. */
const REFUSALS: Refusals = [
  ['price', /FeeTooSmallUTxO/],
  ['conflict', /BadInputsUTxO|All inputs are spent/i],
  ['expired', /OutsideValidityIntervalUTxO/],
  ['node', /mempool (?:is )?full/i],
]

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'spendable',
  firstNonce: null,
  nothingExcludes: false,
  // A slot lasts one second.
  expiry: { unit: 'slot', aheadMax: 86_400, perSecondMax: { local: 2, regtest: 2, mainnet: 1 } },
  cancellation: null,
  feePayer: false,
  staking: false,
  contractPayments: 'listed',
  feeRateDecimals: 0,
  leastRate: () => PARAMETERS.feePerByte,
  // The smallest transfer has one input and one output.
  leastFee: (rate) => rate * 189n + PARAMETERS.feeConstant,
  // The maximum is the fee for the size, the constant part and, without change, as much as was
  // missing for a change output.
  feeMostAt: (_, { vsize, fee_constant, change }, rate, scale) => {
    const surplus = change === null ? surplusMost(rate / scale) : 0n
    return (
      (BigInt(vsize as number) + EDGE_BYTES) * rate +
      (BigInt(fee_constant as string) + surplus) * scale
    )
  },
  refusals: REFUSALS,
  surchargeMost: noSurcharge,
}
