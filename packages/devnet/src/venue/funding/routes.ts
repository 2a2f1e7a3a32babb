import type { LocalChain } from '../../local-chain.ts'
import { REGISTRY } from '../../registry.ts'
import { power } from '../engine/numbers.ts'
import { magnitude, startingPrice, type Coin } from '../engine/markets.ts'
import type { Route } from './types.ts'

/** Where the registry leaves a network's finality to the network itself. */
const CONFIRMATIONS = 2
/** Withdrawals are at least so many fees. */
const MINIMUM_FEES = 10n

/**
 * Every coin of a venue on every local network that has it: the registry's order, which begins with
 * a coin's own network.
 */
export function routesOf(coins: ReadonlyMap<string, Coin>, chains: readonly LocalChain[]): Route[] {
  return REGISTRY.assets.flatMap(({ asset_name: asset, ticker, network, decimals }) => {
    const coin = coins.get(ticker)
    const isLocal = chains.some(({ code, assets }) => code === network && assets.includes(asset))
    if (!coin || !isLocal) return []
    // The power of ten below what a dollar buys.
    const fee = power(Math.max(0, coin.decimals + magnitude(1 / startingPrice(ticker))))
    const confirmations =
      REGISTRY.networks.find(({ code }) => code === network)?.confirmations ?? CONFIRMATIONS
    return [
      {
        coin: ticker,
        network,
        asset,
        chainDecimals: decimals,
        fee,
        minimum: fee * MINIMUM_FEES,
        confirmations,
      },
    ]
  })
}
