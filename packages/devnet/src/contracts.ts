import { RequestError } from './errors.ts'
import { tokenAddress } from './evm/contracts.ts'
import type { LocalChain } from './local-chain.ts'

/**
 * Returns the address of a token's local contract, whether the asset registry contains it yet or
 * not: the value of `contract_address.local` in a new line of the registry. An unknown network is
 * treated as an EVM network, because only those are added by data alone.
 */
export function localContract(
  chains: readonly LocalChain[],
  network: unknown,
  ticker: unknown,
): { asset: string; local: string } {
  if (typeof network !== 'string' || !/^[A-Z][A-Z0-9_]*$/.test(network))
    throw new RequestError(
      `network ${JSON.stringify(network)} is not a network's code, such as "ETH"`,
    )
  if (typeof ticker !== 'string' || !/^[A-Za-z0-9.]{1,20}$/.test(ticker))
    throw new RequestError(
      `ticker ${JSON.stringify(ticker)} is not a coin's ticker, such as "USDC"`,
    )
  const asset = `${ticker}_${network}`
  const chain = chains.find(({ code }) => code === network)
  if (!chain) return { asset, local: tokenAddress(asset) }
  if (!chain.tokenAddress) throw new RequestError(`${network} has no tokens here`)
  return { asset, local: chain.tokenAddress(asset) }
}
