import { RequestError } from './errors.ts'
import { tokenAddress } from './evm/contracts.ts'
import type { LocalChain } from './local-chain.ts'

/**
 * Where the local contract of a token stands, whether the asset registry has it yet or not: what a
 * new line of the registry names as `contract_address.local`. A network that is not there yet is
 * taken for an EVM network, since no other joins by data alone.
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
