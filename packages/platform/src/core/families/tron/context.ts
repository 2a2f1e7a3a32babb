import type { Asset, Network, TronClient, TronParameters } from '@custody/chains'
import type { ChainContext } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/** Dependencies of this family's functions. */
export interface Tron extends ChainContext {
  network: Network
  client: TronClient
  native: Asset
  /** The chain's price parameters, which are the same for all users; at most ten seconds old. */
  parameters: Cached<TronParameters>
}
