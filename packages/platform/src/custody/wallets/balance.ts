import { formatAmount, type Asset } from '@custody/chains'
import { exact } from '../../core/decimals.ts'

/**
 * SQL columns with the sums of a wallet's ledger accounts `a`, in the smallest unit: the available
 * amount, and everything that is held on the chain.
 */
export const BALANCE_COLUMNS = `
  coalesce(sum(a.balance) filter (where a.kind = 'available'), 0)::text available,
  coalesce(
    sum(a.balance) filter (
      where a.kind in (
        'available', 'reserved', 'unswept', 'frozen', 'staked_energy', 'staked_bandwidth', 'staked_energy_reserved',
        'staked_bandwidth_reserved', 'cooling'
      )
    ),
    0
  )::text held`

/** Columns read by {@link BALANCE_COLUMNS}. */
export interface BalanceRow {
  available: string
  held: string
}

/**
 * Returns the spendable, pending and total balance in units of the asset.
 * @param reserve chain reserve of the account, in the smallest unit
 */
export function balancesOf(
  { available, held }: BalanceRow,
  reserve: bigint,
  { decimals }: Pick<Asset, 'decimals'>,
) {
  const least = (value: bigint) => (value < 0n ? 0n : value)
  const show = (value: bigint) => exact(formatAmount(value, decimals))
  const spendable = least(BigInt(available) - reserve)
  const total = least(BigInt(held))
  return { spendable: show(spendable), pending: show(least(total - spendable)), total: show(total) }
}
