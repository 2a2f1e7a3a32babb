import type { Asset, Network } from '../types.ts'
import type { Left, Plan, Planned } from './types.ts'
import type { UnsignedTransaction } from '../types.ts'

export interface FundedAddress {
  path: number[]
  address: string
  /** Balances by asset, including the native one. */
  balances: Record<string, string>
}

/**
 * Common functions of chains on which every address pays its own fees, including those of its
 * tokens. Amounts are in the smallest native unit.
 */
export interface FeePayingChain {
  network: Network
  assets: readonly Asset[]
  holders: readonly FundedAddress[]
  /** Returns the maximum cost of a token transfer for its address. */
  tokenCost(holder: FundedAddress, asset: Asset): bigint
  /**
   * Returns the cost of a payment of the native coin to the destination, or (`fuel`) to one of our
   * own addresses.
   */
  nativeCost(holder: FundedAddress, fuel: boolean): bigint
  /**
   * Minimum balance of an address in use, and the balance that an address needs in addition to its
   * fuel.
   */
  reserve: bigint
  /** @param at index of the transaction among those of this address */
  build(o: {
    holder: FundedAddress
    asset: Asset
    to: string
    amount: bigint
    at: number
  }): UnsignedTransaction
  to: string
}

/** Returns an address's balance of an asset. */
const balanceOf = (holder: FundedAddress, { asset_name: name }: Asset): bigint =>
  BigInt(holder.balances[name] ?? '0')

/** Returns the report of a balance that stays at its address. */
const leftOf = (holder: FundedAddress, asset: Asset, why: string): Left => ({
  address: holder.address,
  asset: asset.asset_name,
  amount: balanceOf(holder, asset).toString(),
  why,
})

/** Tokens of an address, and the cost of moving them. */
interface TokenNeed {
  holder: FundedAddress
  held: Asset[]
  need: bigint
}

/** Returns the tokens of an address with the cost of moving them; nothing if it has none. */
function tokenNeedOf(
  holder: FundedAddress,
  tokens: readonly Asset[],
  tokenCost: FeePayingChain['tokenCost'],
): TokenNeed[] {
  const held = tokens.filter((asset) => balanceOf(holder, asset) > 0n)
  const need = held.reduce((sum, asset) => sum + tokenCost(holder, asset), 0n)
  return held.length === 0 ? [] : [{ holder, held, need }]
}

/** Returns the address with the largest rest that is not excluded. */
const richestOther = (
  rest: ReadonlyMap<FundedAddress, bigint>,
  excluded: readonly FundedAddress[],
): [FundedAddress, bigint] | undefined =>
  [...rest]
    .filter(([holder]) => !excluded.includes(holder))
    .sort(([, a], [, b]) => (a > b ? -1 : 1))[0]

/**
 * Plans one round: native coin for addresses that cannot pay for their tokens, and the tokens of
 * those that can. Once no movable token is left, the native coin of all addresses.
 */
export function planRound({
  network,
  assets,
  holders,
  tokenCost,
  nativeCost,
  reserve,
  build,
  to,
}: FeePayingChain): Plan {
  const native = assets.find(({ asset_name: name }) => name === network.native_asset) as Asset
  const tokens = assets.filter(({ type }) => type === 'token')
  const rest = new Map(holders.map((holder) => [holder, balanceOf(holder, native)]))
  const counts = new Map<FundedAddress, number>()
  const transactions: Planned[] = []
  const left: Left[] = []
  const pay = (
    holder: FundedAddress,
    asset: Asset,
    address: string,
    amount: bigint,
    fuel?: number[],
  ): void => {
    const at = counts.get(holder) ?? 0
    counts.set(holder, at + 1)
    transactions.push({
      unsigned: build({ holder, asset, to: address, amount, at }),
      asset: asset.asset_name,
      from: holder.address,
      amount: amount.toString(),
      ...(fuel ? { fuel } : {}),
    })
  }
  const needs = holders.flatMap((holder) => tokenNeedOf(holder, tokens, tokenCost))
  const needy = needs.filter(({ holder, need }) => (rest.get(holder) as bigint) < need + reserve)
  for (const { holder, held, need } of needs.filter((each) => !needy.includes(each))) {
    for (const asset of held) pay(holder, asset, to, balanceOf(holder, asset))
    rest.set(holder, (rest.get(holder) as bigint) - need)
  }
  for (const { holder, held, need } of needy) {
    const missing = need + reserve - (rest.get(holder) as bigint)
    const source = richestOther(rest, [holder, ...needy.map((other) => other.holder)])
    const cost = source ? missing + nativeCost(source[0], true) + reserve : 0n
    if (source && source[1] >= cost) {
      pay(source[0], native, holder.address, missing, holder.path)
      rest.set(source[0], source[1] - cost + reserve)
    } else {
      left.push(
        ...held.map((asset) => ({
          address: holder.address,
          asset: asset.asset_name,
          amount: balanceOf(holder, asset).toString(),
          waits: true as const,
          why: `its fees require ${missing} more of ${native.asset_name}, in the smallest unit, at this address: send it, and gather again`,
        })),
      )
    }
  }
  const more = transactions.length > 0
  for (const holder of more ? [] : holders) {
    const held = balanceOf(holder, native)
    if (held === 0n) continue
    const amount = held - nativeCost(holder, false)
    if (needy.some((each) => each.holder === holder))
      left.push(leftOf(holder, native, 'kept for the fees of its tokens'))
    else if (amount > 0n) pay(holder, native, to, amount)
    else left.push(leftOf(holder, native, 'less than its fee'))
  }
  return { transactions, left, more }
}
