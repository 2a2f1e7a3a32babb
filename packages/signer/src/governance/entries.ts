import { PolicyError } from '@custody/policy'
import type { Item, Judged } from './items.ts'

/** When and from which node an item was received. */
export interface Receipt {
  /** Unix seconds at which the item is judged. */
  readonly at_s: number
  /** The node that has sent the item; this node if it was presented here. */
  readonly node: number
  /** Unix seconds at which both peers received a change; null if this is not known. */
  readonly witnesses: [number, number] | null
  /** Whether approvals are accepted because both peers had recorded them by `at_s`. */
  readonly byBoth: boolean
}

/**
 * Returns the entry that records an item.
 * @throws PolicyError `NOT_ALLOWED` for a first document, which only operators enter
 */
export function entryOf(item: Item, { at_s, node, witnesses, byBoth }: Receipt): Judged {
  switch (item.kind) {
    case 'first':
      throw new PolicyError('NOT_ALLOWED', 'kind', 'Only operators enter a first document')
    case 'change': {
      const { kind: _kind, ...body } = item
      return { kind: 'policy-change', body: { ...body, at_s, witnesses } }
    }
    case 'statement': {
      const { kind: _kind, ...body } = item
      return { kind: 'policy-statement', body: { ...body, at_s } }
    }
    case 'resumed': {
      const { kind: _kind, ...body } = item
      return { kind: 'policy-resumed', body: { ...body, at_s } }
    }
    case 'confirmed': {
      const { kind: _kind, ...body } = item
      return { kind: 'policy-confirmed', body: { ...body, at_s, node } }
    }
    case 'reset': {
      const { kind: _kind, ...body } = item
      return { kind: 'policy-reset-begun', body: { ...body, at_s, is_known: true } }
    }
    case 'approved': {
      const { kind: _kind, ...body } = item
      return { kind: 'policy-approved', body: { ...body, at_s, node, by_both: byBoth } }
    }
  }
}
