import { cardano, ChainError, solana, tron, type FamilyName, type Network } from '@custody/chains'

/** In what the families differ for the platform, beside the code that builds their transactions. */
export interface Traits {
  /** Who pays network fees: the sending wallet, or the workspace's gas tank. */
  feesFrom: 'wallet' | 'tank'
  /** `spendable`: every address is spent from; `swept`: deposits are moved to the omnibus address; `tagged`: one address, a tag per deposit address. */
  deposits: 'spendable' | 'swept' | 'tagged'
  /** The chain wants something to stay on an account, and says which destinations cannot be paid. */
  accountRules: boolean
  /**
   * Accounts have no sequence: the nodes sign one transaction for a transfer, and one that died cannot be followed by
   * another. What was only included may die as well, if a reorganisation takes it back.
   */
  nothingExcludes?: boolean
  /** Decimals that a caller's fee_rate may have. */
  feeRateDecimals: number
  /** The smallest rate that the network takes, as the chain's integer. */
  leastRate(network: Network): bigint
  /** What the smallest transfer costs at a rate, in the smallest native unit. */
  leastFee(rate: bigint): bigint
}

const one = () => 1n

const TRAITS: Partial<Record<FamilyName, Traits>> = {
  // The smallest transfer has 110 vbytes, or 21,000 gas.
  utxo: { feesFrom: 'wallet', deposits: 'spendable', accountRules: false, feeRateDecimals: 3, leastRate: (network) => BigInt(network.utxo?.min_fee_rate ?? 1) * 1000n, leastFee: (rate) => (rate * 110n) / 1000n },
  evm: { feesFrom: 'tank', deposits: 'swept', accountRules: false, feeRateDecimals: 9, leastRate: one, leastFee: (rate) => rate * 21_000n },
  // One price for everybody, so that a caller's rate is only a limit. Points of bandwidth for TRX, energy for tokens.
  tron: { feesFrom: 'tank', deposits: 'swept', accountRules: true, nothingExcludes: true, feeRateDecimals: 0, leastRate: one, leastFee: (rate) => rate * tron.TRANSFER_BANDWIDTH },
  xrp: { feesFrom: 'wallet', deposits: 'tagged', accountRules: true, feeRateDecimals: 0, leastRate: () => 10n, leastFee: (rate) => rate },
  solana: { feesFrom: 'wallet', deposits: 'swept', accountRules: true, nothingExcludes: true, feeRateDecimals: 0, leastRate: () => solana.SIGNATURE_FEE, leastFee: (rate) => rate },
  // The smallest transfer has one input and one output.
  cardano: { feesFrom: 'wallet', deposits: 'spendable', accountRules: false, feeRateDecimals: 0, leastRate: () => cardano.PARAMETERS.feePerByte, leastFee: (rate) => rate * 189n + cardano.PARAMETERS.feeConstant },
  stellar: { feesFrom: 'wallet', deposits: 'tagged', accountRules: true, feeRateDecimals: 0, leastRate: () => 100n, leastFee: (rate) => rate },
}

export function traitsOf(network: Network): Traits {
  const traits = TRAITS[network.family]
  if (!traits) throw new ChainError('FAMILY', `${network.code}: family ${network.family} is not available`)
  return traits
}
