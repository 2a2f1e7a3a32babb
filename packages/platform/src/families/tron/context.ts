import type { Asset, Network, TronClient, TronParameters } from '@custody/chains'
import type { ChainContext } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/** What the functions of this family are given. */
export interface Tron extends ChainContext {
  network: Network
  client: TronClient
  native: Asset
  /** One price for everybody: the chain's parameters, at most ten seconds old. */
  parameters: Cached<TronParameters>
}
