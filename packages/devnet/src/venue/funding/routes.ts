import type { LocalChain } from '../../local-chain.ts'
import { REGISTRY } from '../../registry.ts'
import { power } from '../engine/numbers.ts'
import { magnitude, startingPrice, type Coin } from '../engine/markets.ts'
import type { Route } from './types.ts'

/** Number of confirmations on networks whose finality the registry leaves to the chain. */
const CONFIRMATIONS = 2
/** Minimum withdrawal as a multiple of the fee. */
const MINIMUM_FEES = 10n

/**
 * Returns every coin of a venue on every local network that has it, in the registry's order, which
 * begins with a coin's own network.
 */
export function routesOf(coins: ReadonlyMap<string, Coin>, chains: readonly LocalChain[]): Route[] {
  return REGISTRY.assets.flatMap(({ asset_name: asset, ticker, network, decimals }) => {
    const coin = coins.get(ticker)
    const isLocal = chains.some(({ code, assets }) => code === network && assets.includes(asset))
    if (!coin || !isLocal) return []
    // The largest power of ten that is worth less than a dollar.
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
