import { formatAmount, type Registry } from '@custody/chains'
import type { DustTotal } from './report.ts'

/** Number of balances with dust and its sum in the smallest unit, by asset. */
export type Dust = ReadonlyMap<string, { addresses: number; amount: bigint }>

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
