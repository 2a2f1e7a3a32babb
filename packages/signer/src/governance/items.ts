import { z } from 'zod'
import { POLICY_ITEMS } from '../store/entries/governance.ts'
import type { Entry } from '../store/entries/index.ts'
import type { GovernanceKind } from '../store/entries/governance.ts'

/** Something about the policy of a workspace that people have signed, and that nodes exchange. */
export const itemSchema = z.discriminatedUnion('kind', [
  POLICY_ITEMS.first.extend({ kind: z.literal('first') }),
  POLICY_ITEMS.change.extend({ kind: z.literal('change') }),
  POLICY_ITEMS.statement.extend({ kind: z.literal('statement') }),
  POLICY_ITEMS.resumed.extend({ kind: z.literal('resumed') }),
  POLICY_ITEMS.confirmed.extend({ kind: z.literal('confirmed') }),
  POLICY_ITEMS.reset.extend({ kind: z.literal('reset') }),
  POLICY_ITEMS.approved.extend({ kind: z.literal('approved') }),
])
export type Item = z.infer<typeof itemSchema>
export type ItemOf<K extends Item['kind']> = Extract<Item, { kind: K }>
export type GovernanceEntry = Entry<GovernanceKind>

/** An entry that is about to be recorded, or that was read. It has an effect after it was judged. */
export type Judged = {
  [K in GovernanceEntry['kind']]: Pick<Extract<GovernanceEntry, { kind: K }>, 'kind' | 'body'>
}[GovernanceEntry['kind']]
export type JudgedOf<K extends GovernanceKind> = Extract<Judged, { kind: K }>

/**
 * Returns the item that an entry was recorded for; null if the entry has a meaning for its own node
 * only.
 * @param node the node whose record contains it
 */
export function itemOf(entry: GovernanceEntry, node: number): Item | null {
  switch (entry.kind) {
    case 'policy-typed':
    case 'policy-begun': {
      const { workspace, document, possessions } = entry.body
      return { kind: 'first', workspace, document, possessions }
    }
    case 'policy-change': {
      const { workspace, document, possessions, approvals } = entry.body
      return { kind: 'change', workspace, document, possessions, approvals }
    }
    case 'policy-statement': {
      const { workspace, signed } = entry.body
      return { kind: 'statement', workspace, signed }
    }
    case 'policy-resumed': {
      const { workspace, stop, approvals } = entry.body
      return { kind: 'resumed', workspace, stop, approvals }
    }
    case 'policy-confirmed': {
      const { workspace, hash } = entry.body
      return entry.body.node === node ? { kind: 'confirmed', workspace, hash } : null
    }
    case 'policy-approved': {
      const { workspace, approvals } = entry.body
      return { kind: 'approved', workspace, approvals }
    }
    case 'policy-reset-begun': {
      const { workspace, document, possessions, words } = entry.body
      return { kind: 'reset', workspace, document, possessions, words }
    }
    case 'policy-reset-typed':
    case 'policy-reset-complete':
    case 'policy-reset-withdrawn':
    case 'policy-followed':
    case 'policy-uninstalled':
    case 'policy-known':
      return null
  }
}

/** Returns whether this version knows a kind of items. */
export const isItemKind = (kind: string): boolean => Object.hasOwn(POLICY_ITEMS, kind)

/** Returns the size of an item in characters. */
export function sizeOfItem(item: Item): number {
  const texts =
    item.kind === 'first' || item.kind === 'reset'
      ? [item.document, ...item.possessions]
      : item.kind === 'change'
        ? [item.document, ...item.possessions, ...item.approvals]
        : item.kind === 'statement'
          ? [item.signed]
          : item.kind === 'resumed'
            ? [item.stop, ...item.approvals]
            : item.kind === 'approved'
              ? item.approvals
              : [item.hash]
  return texts.reduce((sum, text) => sum + text.length, 0)
}
