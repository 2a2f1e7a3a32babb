import { OMNIBUS_INDEX } from '../derivation.ts'
import type { Refusals, Traits } from '../traits.ts'
import { gasMost, NATIVE_GAS } from './gas.ts'

/**
 * Divisor of the fee cap: publishing on the parent chain may cost at most this fraction of it, on
 * networks with a fee oracle.
 */
const L1_SHARE = 10n

/**
 * Messages of geth and its derivatives (bor, BSC, coreth, nitro, op-geth), Erigon, reth, Besu,
 * Nethermind, and Ethermint (Cronos).
 */
const REFUSALS: Refusals = [
  ['known', /already ?known|known transaction|already imported/i],
  ['gas', /intrinsic gas (?:too low|exceeds gas limit)/i],
  [
    'node',
    /txpool is full|exceeds the configured cap|transaction gas limit too high|exceeds block gas limit|account limit|queue.{0,20}full/i,
  ],
  [
    'price',
    /underpriced|gas tip cap \d+, minimum needed|gas price (?:is )?(?:below|too low|lower)|fee ?cap less than block base fee|max fee per gas less than block base fee|fee ?too ?low|insufficient fee|minimum global fee|max ?fee.{0,20}below/i,
  ],
  ['conflict', /nonce ?(?:is )?too (?:low|high|distant)|old ?nonce|nonce gap|invalid nonce/i],
  [
    'funds',
    /insufficient ?(?:funds|balance|maxfeepergas for sender balance)|upfront cost exceeds/i,
  ],
]

export const traits: Traits = {
  feesFrom: 'tank',
  deposits: 'swept',
  firstNonce: 'zero',
  nothingExcludes: false,
  expiry: null,
  cancellation: {
    index: OMNIBUS_INDEX,
    moves: 'nothing',
    // Nodes require at most 12.5 % more, which the percentage covers.
    increment: () => 0n,
  },
  feePayer: false,
  staking: false,
  contractPayments: 'hidden',
  feeRateDecimals: 9,
  leastRate: ({ min_tip: tip = '1' }) => BigInt(tip),
  // Fee of the smallest transfer. On networks where publishing is part of the gas, each transfer
  // costs more.
  leastFee: (rate) => rate * NATIVE_GAS,
  gasMost,
  feeMostAt: null,
  refusals: REFUSALS,
  surchargeMost: (network) =>
    network.l1_fee_oracle === undefined ? 0n : BigInt(network.fee_cap) / L1_SHARE,
}
