import { formatAmount, type Asset } from '@custody/chains'
import { exact } from '../decimals.ts'

/**
 * Sums of a wallet's ledger accounts `a`, in the smallest unit: what can be spent, and all that is
 * held on chain.
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

/** What {@link BALANCE_COLUMNS} read. */
export interface BalanceRow {
  available: string
  held: string
}

/** @param kept what must stay on the account */
export function balancesOf(
  { available, held }: BalanceRow,
  kept: bigint,
  { decimals }: Pick<Asset, 'decimals'>,
) {
  const least = (value: bigint) => (value < 0n ? 0n : value)
  const show = (value: bigint) => exact(formatAmount(value, decimals))
  const spendable = least(BigInt(available) - kept)
  const total = least(BigInt(held))
  return { spendable: show(spendable), pending: show(least(total - spendable)), total: show(total) }
}
