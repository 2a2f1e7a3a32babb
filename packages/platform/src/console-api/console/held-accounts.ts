import type { AccountKind } from '../../core/ledger/post.ts'

/** The ledger accounts of a wallet that together are its total balance. */
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
