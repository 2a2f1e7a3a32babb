import type { AccountKind } from '../ledger/post.ts'

/** The accounts of a wallet that together are all it holds. */
export const HELD_ACCOUNTS: readonly AccountKind[] = [
  'available',
  'reserved',
  'unswept',
  'frozen',
  'staked_energy',
  'staked_bandwidth',
  'staked_energy_reserved',
  'staked_bandwidth_reserved',
  'cooling',
]
