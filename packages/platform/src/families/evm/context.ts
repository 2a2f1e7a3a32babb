import type { Asset, EvmClient, EvmFeeRates, Network } from '@custody/chains'
import type { ChainContext } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/** What the functions of this family are given. */
export interface Evm extends ChainContext {
  network: Network
  client: EvmClient
  native: Asset
  /** Prices of the moment, at most ten seconds old. */
  feeRates: Cached<EvmFeeRates>
  /**
   * What the cheapest transfer of native coin uses, as the endpoint estimated it at most ten
   * seconds ago.
   */
  nativeGas: Cached<bigint>
}
