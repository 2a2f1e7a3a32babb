import type { LocalChain, Payment } from '../../local-chain.ts'
import { rescale } from '../engine/numbers.ts'
import type { Coin } from '../engine/markets.ts'
import type { Deposit, DepositAddress, Route } from './types.ts'

/** Maximum number of blocks of one scan; the next one continues from there. */
const BLOCKS_MAX = 500

/** Height up to which a network has been scanned completely. */
export interface Cursor {
  network: string
  height: number
}

export interface Seen {
  final: Deposit[]
  waiting: Deposit[]
  height: number
}

/** Returns the account that a payment is for; undefined if it is not this venue's. */
type OwnerOf = (payment: Payment) => DepositAddress | undefined

interface Scan {
  /** Last scanned height. */
  after: number
  routes: readonly Route[]
  coins: ReadonlyMap<string, Coin>
  ownerOf: OwnerOf
  nowMs: number
}

/**
 * Returns payments to a venue's addresses since the last scan. A chain that was never started is
 * skipped.
 */
export async function look(
  chain: LocalChain,
  { after, routes, coins, ownerOf, nowMs }: Scan,
): Promise<Seen | null> {
  const { head } = await chain.info()
  if (!head) return null
  const seen: Seen = { final: [], waiting: [], height: after }
  const last = Math.min(head.height, after + BLOCKS_MAX)
  for (let height = after + 1; height <= last; height += 1) {
    const payments = await chain.paymentsIn(height)
    // A reorganization happened in between; the next scan reads the new blocks.
    if (!payments) break
    const confirmations = head.height - height + 1
    const deposits = payments.flatMap((payment): Deposit[] => {
      const route = routes.find(
        ({ network, asset }) => network === chain.code && asset === payment.asset,
      )
      const owner = route && ownerOf(payment)
      if (!route || !owner) return []
      const amount = rescale(payment.amount, route.chainDecimals, coins.get(route.coin)!.decimals)
      if (amount === 0n) return []
      return [
        {
          id: `${chain.code}:${payment.hash}:${payment.index}`,
          account: owner.account,
          coin: route.coin,
          network: chain.code,
          address: payment.address,
          tag: owner.tag,
          amount,
          hash: payment.hash,
          height,
          confirmations,
          isCredited: confirmations >= route.confirmations,
          atMs: nowMs,
        },
      ]
    })
    const needed = Math.max(
      ...routes.filter(({ network }) => network === chain.code).map((route) => route.confirmations),
    )
    if (confirmations >= needed) {
      seen.final.push(...deposits)
      seen.height = height
    } else seen.waiting.push(...deposits)
  }
  return seen
}
