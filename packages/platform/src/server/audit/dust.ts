import { formatAmount, isBeyondWorth, type Asset, type Registry } from '@custody/chains'
import type { DustTotal } from './report.ts'

/** The fee cap of a network is about a thousand times what a payment usually costs there. */
const USUAL_SHARE = 1000n

/** Number of balances with dust and its sum in the smallest unit, by asset. */
export type Dust = ReadonlyMap<string, { addresses: number; amount: bigint }>

/**
 * Whether a surplus is less than one sweep of the asset usually costs, so that anyone can cause it
 * for almost nothing, and collecting it would cost more. Prices are not needed: the cost is a
 * thousandth of the network's fee cap, and a token is compared with it at the bounds of the
 * registry's `usd_range` that make the token worth most.
 * @param surplus amount on the chain above the ledger, in the smallest unit
 */
export function isDust(registry: Registry, asset: Asset, surplus: bigint): boolean {
  const cost = BigInt(registry.networkOf(asset).fee_cap) / USUAL_SHARE
  return surplus > 0n && isBeyondWorth(registry, asset, surplus, cost)
}

/** Returns the sums of two parts of a network's balances. */
export function addDust(one: Dust, other: Dust): Dust {
  const sums = new Map(one)
  for (const [asset, { addresses, amount }] of other) {
    const before = sums.get(asset) ?? { addresses: 0, amount: 0n }
    sums.set(asset, { addresses: before.addresses + addresses, amount: before.amount + amount })
  }
  return sums
}

/** Returns the dust of a network as it is reported, in the order of the registry's assets. */
export const reportDust = (registry: Registry, network: string, dust: Dust): DustTotal[] =>
  registry.assetsOf(network).flatMap(({ asset_name: name, decimals }) => {
    const total = dust.get(name)
    return total === undefined
      ? []
      : [
          {
            kind: 'dust' as const,
            network,
            asset: name,
            addresses: total.addresses,
            amount: formatAmount(total.amount, decimals),
          },
        ]
  })
