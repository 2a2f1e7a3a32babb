import type { Asset, EvmClient, EvmFeeRates, Network } from '@custody/chains'
import type { ChainContext } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/** Dependencies of this family's functions. */
export interface Evm extends ChainContext {
  network: Network
  client: EvmClient
  native: Asset
  /** Current prices, at most ten seconds old. */
  feeRates: Cached<EvmFeeRates>
  /** Gas of the cheapest native transfer, as estimated by the endpoint at most ten seconds ago. */
  nativeGas: Cached<bigint>
}
