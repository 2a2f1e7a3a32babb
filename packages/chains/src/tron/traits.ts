import type { Traits } from '../traits.ts'
import { TRANSFER_BANDWIDTH } from './bandwidth.ts'

const DAY_S = 86_400
/**
 * Bandwidth of a token transfer, or what brings an account to life, 1.1 TRX; room for dearer
 * parameters. In sun.
 */
const SURCHARGE_SUN = 5_000_000n

export const traits: Traits = {
  feesFrom: 'tank',
  deposits: 'swept',
  firstNonce: null,
  nothingExcludes: true,
  // As far ahead as its own nodes take a transaction. A local chain's time may be moved forward,
  // past the end of a stake's cooldown.
  expiry: { unit: 'second', aheadMax: DAY_S, localAheadMax: 400 * DAY_S },
  cancellation: null,
  feePayer: false,
  staking: true,
  // One price for everybody, so that a caller's rate is only a limit. Points of bandwidth for TRX,
  // energy for tokens.
  feeRateDecimals: 0,
  leastRate: () => 1n,
  leastFee: (rate) => rate * TRANSFER_BANDWIDTH,
  feeMostAt: null,
  surchargeMost: () => SURCHARGE_SUN,
}
