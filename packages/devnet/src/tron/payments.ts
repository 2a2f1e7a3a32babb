import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Payment } from '../local-chain.ts'
import { toBase58 } from './address.ts'
import { TRON_TOKENS, type Block } from './chain.ts'

const TRANSFER = Buffer.from(keccak_256(Buffer.from('Transfer(address,address,uint256)'))).toString(
  'hex',
)
const bare = (hex: string): string => hex.replace(/^0x/, '').toLowerCase()

/**
 * Returns the payments of a block's transactions: transferred TRX, transfers of registered tokens,
 * and TRX that contracts paid.
 */
export function paymentsOf({ transactions }: Block): Payment[] {
  return transactions.flatMap(({ tx, outcome }): Payment[] => {
    if (outcome.contractRet !== 'SUCCESS') return []
    if (tx.type === 'TransferContract') {
      const address = toBase58(String(tx.value['to_address']))
      return [
        {
          hash: tx.id,
          index: 0,
          asset: 'TRX',
          address,
          tag: null,
          amount: BigInt(String(tx.value['amount'])),
        },
      ]
    }
    const internal = outcome.internal.map(({ to, amount }, at) => ({
      hash: tx.id,
      index: outcome.logs.length + at,
      asset: 'TRX',
      address: toBase58(to),
      tag: null,
      amount,
    }))
    const logged = outcome.logs.flatMap(
      ({ address, topics: [kind = '', , receiver], data }, index) => {
        const token = TRON_TOKENS.find((each) => each.address.slice(2) === bare(address).slice(-40))
        if (!token || bare(kind) !== TRANSFER || receiver === undefined) return []
        const to = toBase58(`41${bare(receiver).slice(-40)}`)
        return [
          {
            hash: tx.id,
            index,
            asset: token.asset,
            address: to,
            tag: null,
            amount: BigInt(`0x${bare(data)}`),
          },
        ]
      },
    )
    return [...logged, ...internal]
  })
}
