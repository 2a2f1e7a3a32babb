import type { ChainTransfer } from '../rpc.ts'
import { canonical } from './address.ts'
import { Answer, type RpcBlock } from './rpc-types.ts'

const WEI_PER_GWEI = 10n ** 9n

/** Withdrawal of a validator as nodes return it (EIP-4895). `amount` is in Gwei. */
interface RpcWithdrawal {
  index?: unknown
  address?: unknown
  amount?: unknown
}

/**
 * Returns the native coin that a block pays to validators' addresses (EIP-4895), in wei. These
 * payments have no transaction and no sender, so `txid` is made of their index, which the network
 * counts from its first withdrawal. A block without the list has none: `withdrawalsRoot` does not
 * show that one is missing, because OP Stack networks use that field for something else.
 * @param network code of the network, for errors
 * @param asset ticker of the native coin
 * @throws RpcUnavailable if the list is malformed, or contains an index twice
 */
export function withdrawalsOf(network: string, asset: string, block: RpcBlock): ChainTransfer[] {
  if (block.withdrawals === undefined || block.withdrawals === null) return []
  const answer = new Answer(network, 'eth_getBlockByNumber')
  const indices = new Set<bigint>()
  return answer.list<RpcWithdrawal | null>(block.withdrawals, 'withdrawals').flatMap((each) => {
    const index = answer.quantity(each?.index, 'withdrawals.index')
    if (indices.has(index)) answer.refuse(`returned the withdrawal ${index} twice in ${block.hash}`)
    indices.add(index)
    const address = answer.address(each?.address, 'withdrawals.address')
    const amount = answer.quantity(each?.amount, 'withdrawals.amount') * WEI_PER_GWEI
    if (amount === 0n) return []
    return [
      {
        txid: `withdrawal:${index}`,
        position: 0,
        asset,
        address: canonical(address),
        amount,
        sender: null,
        senders: { addresses: [], complete: true },
        coinbase: true,
        withoutTransaction: true,
      },
    ]
  })
}
