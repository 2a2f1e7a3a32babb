import { LIMITS, readSigned, type PolicyErrorCode } from '@custody/policy'
import type { Item } from './items.ts'

/** Reasons for which a change is refused that was acceptable when a peer saw it. */
export const LATE: ReadonlySet<PolicyErrorCode> = new Set<PolicyErrorCode>([
  'EXPIRED',
  'KEY_REVOKED',
  'KEY_SUSPENDED',
])

/**
 * Returns whether an item is a suspension that has ended. Such a suspension would change nothing, and
 * nodes that record it again and inform each other would never end.
 * @param now_s Unix seconds
 */
export function isEnded(item: Item, now_s: number): boolean {
  if (item.kind !== 'statement') return false
  const { statement } = readSigned(item.signed)
  return statement.kind === 'suspend' && statement.at + LIMITS.suspensionS <= now_s
}
