import { approvedAt, documentHash, readDocument, readSigned } from '@custody/policy'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import { count } from '../store/entries/values.ts'
import type { Store } from '../store/index.ts'
import { pageAbove, type PageLimits } from '../store/page.ts'
import { isKnown, type Held } from './held.ts'
import {
  isItemKind,
  itemOf,
  itemSchema,
  sizeOfItem,
  type GovernanceEntry,
  type ItemOf,
} from './items.ts'
import type { Policies } from './policies.ts'

/** Maximum number of items in one page. */
const PAGE_MAX = 200
/** Limits of a page; sizes in characters. */
const PAGE_LIMITS: PageLimits = { entries: PAGE_MAX, size: 4 * 1024 * 1024 }

/** `seen_at_s`: Unix seconds. `is_held`: the document is pending, in force, or was in force. */
const sentSchema = z.strictObject({
  height: count,
  seen_at_s: count,
  is_held: z.boolean(),
  item: itemSchema,
})
/** An item of a peer's record. */
export type Sent = z.infer<typeof sentSchema>

/** Items of a node's record up to the height `to`. */
const pageSchema = z.strictObject({
  generation: count,
  to: count,
  is_last: z.boolean(),
  items: z.array(sentSchema).max(PAGE_MAX),
})

const laterSchema = z.looseObject({
  items: z.array(z.looseObject({ item: z.looseObject({ kind: z.string() }) })).max(PAGE_MAX),
})

/** A peer's own answers contradict the position of its policies that it claims. */
export class Unproven extends Refusal {
  constructor(node: number) {
    super(
      'PEER_UNAVAILABLE',
      `The policies that peer node ${node} has sent have an unknown format, or end before its position`,
      { node },
    )
  }
}

/**
 * Reads a page of a peer.
 * @throws Unproven
 * @throws Refusal `PEER_UNAVAILABLE` if it contains a kind of items that only a later version knows
 */
export function readPage(node: number, answer: unknown): z.infer<typeof pageSchema> {
  const parsed = pageSchema.safeParse(answer)
  if (parsed.success) return parsed.data
  const later = laterSchema.safeParse(answer)
  if (later.success && later.data.items.some(({ item }) => !isItemKind(item.kind)))
    throw new Refusal('PEER_UNAVAILABLE', `Node ${node} has policies of a later version`, { node })
  throw new Unproven(node)
}

interface Parts {
  node: number
  policies: Policies
  store: Store
}

/**
 * Number that differs after a restoration of this node, and after its operator replaced or removed a
 * policy. Peers then read its items again from the beginning, because it may have less than before.
 */
export const itemGeneration = ({ state: { generation, policiesReplaced } }: Store): number =>
  generation * 1_000_000 + policiesReplaced

/**
 * Returns the time in Unix seconds at which this node states that an item was seen. A restored node
 * records a change again, later than its peers did. With its own late time, a peer that is restored
 * after it could never accept the change. So it states the later time of both peers: one of them is
 * honest, so a node that is not hostile had seen the change by then.
 * @param isKnown whether the node's backup proves that the change was in force here, so that it was
 *   seen within the time of its approvals
 */
function sightOf(
  { kind, body }: Exclude<GovernanceEntry, { kind: 'policy-known' }>,
  isKnown: boolean,
): number {
  if (kind !== 'policy-change') return body.at_s
  const proven = [
    ...(body.witnesses ? [Math.max(...body.witnesses)] : []),
    ...(isKnown ? [approvedAt(body.approvals.map(readSigned))] : []),
  ]
  return Math.min(body.at_s, ...proven)
}

/** Pages of the items on this node's record, which its peers read. */
export class ItemPages {
  readonly #parts: Parts
  /** Hashes of the documents of changes and resets, by the height of the entry, which never changes. */
  readonly #hashes = new Map<number, string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Returns the items above a height. */
  page(after: number): z.infer<typeof pageSchema> {
    const { store } = this.#parts
    const heights = store.state.policyHeights
    const { items, to } = pageAbove(
      heights,
      after,
      (height) => height,
      PAGE_LIMITS,
      (height) => this.#read(height),
    )
    return {
      generation: itemGeneration(store),
      to: to ?? Math.max(heights.at(-1) ?? 0, after),
      is_last: to === null,
      items,
    }
  }

  /** Returns the item of an entry with its size in characters; null if the entry has no item. */
  #read(height: number): { item: Sent; size: number } | null {
    const { policies, node, store } = this.#parts
    const entry = policies.entryAt(height)
    const item = itemOf(entry, node)
    if (item === null || entry.kind === 'policy-known') return null
    // The operator has removed the policy since.
    if (height < (store.state.policies.get(item.workspace)?.[0] ?? 0)) return null
    const { is_held, is_known } =
      item.kind === 'change' || item.kind === 'reset'
        ? this.#factsOf(height, item)
        : { is_held: true, is_known: false }
    const sent = { height, seen_at_s: sightOf(entry, is_known), is_held, item }
    return { item: sent, size: sizeOfItem(item) }
  }

  #factsOf(height: number, { workspace, document }: ItemOf<'change' | 'reset'>) {
    const held = this.#heldOf(workspace)
    // This node cannot read this policy, and peers still read those of other workspaces.
    if (held === null) return { is_held: false, is_known: false }
    const { chain, governance } = held
    const hash = this.#hashes.get(height) ?? documentHash(readDocument(document))
    this.#hashes.set(height, hash)
    const at = chain.findIndex((each) => each.hash === hash)
    return {
      is_held: at >= 0 || governance?.next?.policy.hash === hash,
      is_known: isKnown(held, at + 1, hash),
    }
  }
  #heldOf(workspace: string): Held | null {
    try {
      return this.#parts.policies.held(workspace)
    } catch (error) {
      if (error instanceof Refusal) return null
      throw error
    }
  }
}
