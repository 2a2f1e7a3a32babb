import type { ChainClient } from '@custody/chains'
import { ApiError } from '../errors.ts'
import { stakesOf, type Chain, type Stakes } from './chain.ts'

/** The chains of all configured networks. */
export class Networks {
  readonly #chains: ReadonlyMap<string, Chain>

  constructor(chains: readonly Chain[]) {
    this.#chains = new Map(chains.map((chain) => [chain.network.code, chain]))
  }

  all(): Chain[] {
    return [...this.#chains.values()]
  }

  has(code: string): boolean {
    return this.#chains.has(code)
  }

  /**
   * Returns the chain of a network.
   * @throws ApiError `NETWORK_UNAVAILABLE` if the network has no endpoint
   */
  get(code: string): Chain {
    const match = this.#chains.get(code)
    if (!match)
      throw new ApiError('NETWORK_UNAVAILABLE', `network ${code} has no endpoint configured`)
    return match
  }

  client(code: string): ChainClient {
    return this.get(code).client
  }

  /**
   * Returns the staking operations of a network.
   * @throws if the network has no staking
   */
  stakes(code: string): Stakes {
    return stakesOf(this.get(code))
  }
}
