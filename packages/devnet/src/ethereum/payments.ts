import type { Hex } from 'viem'
import { getAddress, keccak256, toHex } from 'viem/utils'
import type { Payment } from '../local-chain.ts'
import type { EthereumChain } from './chain.ts'
import type { EvmNetwork } from './networks.ts'

interface Transaction {
  hash: Hex
  to: Hex | null
  value: Hex
}
interface Log {
  address: Hex
  topics: Hex[]
  data: Hex
  logIndex: Hex
}
interface Receipt {
  transactionHash: Hex
  status: Hex
  logs: Log[]
}

const TRANSFER = keccak256(toHex('Transfer(address,address,uint256)'))
/** Index of a transaction's own value, before its logs. */
const VALUE_INDEX = -1

/**
 * Returns the payments of a block's transactions: their own value, and the transfers of registered
 * tokens.
 */
export async function paymentsIn(
  chain: EthereumChain,
  network: EvmNetwork,
  height: number,
): Promise<Payment[] | undefined> {
  if (height > chain.head.height) return undefined
  const { anvil } = chain
  const block = await anvil.call<{ transactions: Transaction[] } | null>(
    'eth_getBlockByNumber',
    toHex(height),
    true,
  )
  if (!block || block.transactions.length === 0) return block ? [] : undefined
  const receipts = await anvil.call<Receipt[]>('eth_getBlockReceipts', toHex(height))
  return receipts.flatMap(({ transactionHash: hash, status, logs }): Payment[] => {
    const { to, value } = block.transactions.find((each) => each.hash === hash)!
    if (status !== '0x1') return []
    const own =
      to === null || BigInt(value) === 0n
        ? []
        : [
            {
              hash,
              index: VALUE_INDEX,
              asset: network.native,
              address: getAddress(to),
              tag: null,
              amount: BigInt(value),
            },
          ]
    return [
      ...own,
      ...logs.flatMap(({ address, topics: [kind, , receiver], data, logIndex }) => {
        const token = network.tokens.find(
          (each) => each.address.toLowerCase() === address.toLowerCase(),
        )
        if (!token || kind !== TRANSFER || receiver === undefined) return []
        const to = getAddress(`0x${receiver.slice(26)}`)
        return [
          {
            hash,
            index: Number(logIndex),
            asset: token.asset,
            address: to,
            tag: null,
            amount: BigInt(data),
          },
        ]
      }),
    ]
  })
}
