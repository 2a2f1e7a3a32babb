import type { Payment } from '../local-chain.ts'
import type { Included } from './chain.ts'
import { SOLANA_TOKENS } from './tokens.ts'

/** Returns the increases of a transaction's account balances, by owner. */
export function paymentsOf({ signatures: [hash = ''], keys, meta }: Included): Payment[] {
  if (meta.err !== null) return []
  const coins = keys.flatMap((address, index): Payment[] => {
    const amount = (meta.postBalances[index] ?? 0n) - (meta.preBalances[index] ?? 0n)
    return amount > 0n ? [{ hash, index, asset: 'SOL', address, tag: null, amount }] : []
  })
  const tokens = meta.postTokenBalances.flatMap(
    ({ accountIndex, mint, owner, amount }): Payment[] => {
      const token = SOLANA_TOKENS.find((each) => each.mint === mint)
      const before =
        meta.preTokenBalances.find((each) => each.accountIndex === accountIndex)?.amount ?? 0n
      if (!token || amount <= before) return []
      return [
        {
          hash,
          index: keys.length + accountIndex,
          asset: token.asset,
          address: owner,
          tag: null,
          amount: amount - before,
        },
      ]
    },
  )
  return [...coins, ...tokens]
}
