import type { Refusals, Traits } from '../traits.ts'
import { TRANSFER_BANDWIDTH } from './bandwidth.ts'

const DAY_S = 86_400
/**
 * Maximum surcharge in sun: bandwidth of a token transfer, or the activation of an account, 1.1
 * TRX; with a margin for higher parameters.
 */
const SURCHARGE_SUN = 5_000_000n

/** Codes and messages of java-tron's `broadcasthex`. */
const REFUSALS: Refusals = [
  ['known', /^DUP_TRANSACTION_ERROR/],
  ['expired', /^(?:TRANSACTION_EXPIRATION_ERROR|TAPOS_ERROR)/],
  ['funds', /^BANDWITH_ERROR|balance is not (?:enough|sufficient)|resource insufficient/i],
]

export const traits: Traits = {
  feesFrom: 'tank',
  deposits: 'swept',
  firstNonce: null,
  nothingExcludes: true,
  // The limit of Tron's own nodes for a transaction's expiry. The clock of a local chain may be
  // moved forward, past the end of a stake's cooldown.
  expiry: { unit: 'second', aheadMax: DAY_S, localAheadMax: 400 * DAY_S },
  cancellation: null,
  feePayer: false,
  staking: true,
  contractPayments: 'claimed',
  // All transactions have the same price, so a caller's rate is only a limit. It is per point of
  // bandwidth for TRX, and per energy for tokens.
  feeRateDecimals: 0,
  leastRate: () => 1n,
  leastFee: (rate) => rate * TRANSFER_BANDWIDTH,
  feeMostAt: null,
  refusals: REFUSALS,
  surchargeMost: () => SURCHARGE_SUN,
}
