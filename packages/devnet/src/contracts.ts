import { RequestError } from './errors.ts'
import { tokenAddress } from './ethereum/networks.ts'
import { REGISTRY } from './registry.ts'
import { base58, sha256, toBase58 } from './tron/address.ts'
import { tokenAddress as tronAddress } from './tron/tvm.ts'

/**
 * Where the local contract of a token stands, whether the asset registry has it yet or not: what a new line of the
 * registry names as `contract_address.local`. A network that is not there yet is taken for an EVM network, since no
 * other joins by data alone.
 */
export function localContract(network: unknown, ticker: unknown): { asset: string; local: string } {
  if (typeof network !== 'string' || !/^[A-Z][A-Z0-9_]*$/.test(network)) throw new RequestError(
    `network ${JSON.stringify(network)} is not a network's code, such as "ETH"`
  )
  if (typeof ticker !== 'string' || !/^[A-Za-z0-9.]{1,20}$/.test(ticker)) throw new RequestError(
    `ticker ${JSON.stringify(ticker)} is not a coin's ticker, such as "USDC"`
  )
  const asset = `${ticker}_${network}`
  switch (REGISTRY.networks.find(({ code }) => code === network)?.family ?? 'evm') {
    case 'evm': return { asset, local: tokenAddress(asset) }
    case 'tron': return { asset, local: toBase58(tronAddress(asset)) }
    // A mint needs no key: any 32 bytes are an address.
    case 'solana': return { asset, local: base58(sha256(Buffer.from(`local mint of ${asset}`))) }
    default: throw new RequestError(`${network} has no tokens here`)
  }
}
