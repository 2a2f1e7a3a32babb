import { readSigned, statementHash, type PolicyDocument } from '@custody/policy'
import type { Item } from '../../../../signer/src/governance/items.ts'
import type { WrittenDocument } from './people.ts'
import type { Terms } from './terms.ts'

export const WORKSPACE = 'acme'

/** A statement or change that people presented to a node, as the oracle records it. */
export interface Presented {
  atMs: number
  /** Nodes that have it: the one to which it was presented, and those that read it at once. */
  nodes: readonly number[]
  item: Item
  /** When the only node that had it lost its record; simulated milliseconds. */
  lostMs?: number
}

/** Whether nodes still have something at a time. */
export const isKept = ({ atMs, lostMs = Infinity }: Presented, nowMs: number): boolean =>
  atMs <= nowMs && nowMs < lostMs

/** A person's decision about a transfer, as its signer knows it. Times in Unix seconds. */
export interface Decision {
  /** ID of the transfer. */
  id: string
  by: string
  key: string
  decision: 'approve' | 'reject'
  at: number
  expires: number
  /** Hash of the document in the signed statement. */
  hash: string
  /** Whether the signature is a stranger's, or that of another transfer. */
  isForged: boolean
  /** When it was sent the first time, and when the response arrived; simulated milliseconds. */
  sentMs: number
  answeredMs: number | null
  /** `stored`, the error code, or null if no response arrived. */
  result: string | null
}

/** A document that people wrote. */
export interface KnownDocument extends WrittenDocument {
  terms: Terms
}

/** What the people of a workspace have written, signed and presented. */
export class PolicyRecord {
  readonly documents = new Map<string, KnownDocument>()
  readonly presented: Presented[] = []
  readonly decisions: Decision[] = []

  add(written: WrittenDocument, terms: Terms): KnownDocument {
    const known = { ...written, terms }
    this.documents.set(known.hash, known)
    return known
  }

  /**
   * Notes that a node has lost its record. What no other node has is lost with it.
   * @param isRead whether another node has read everything that the node had recorded until a time
   */
  lose(node: number, nowMs: number, isRead: (untilMs: number) => boolean): void {
    for (const each of this.presented)
      if (each.nodes.every((other) => other === node) && !isRead(each.atMs)) each.lostMs ??= nowMs
  }

  /** Returns a document by its hash. */
  documentOf(hash: string): KnownDocument {
    const known = this.documents.get(hash)
    if (!known) throw new Error(`a document that no person wrote: ${hash}`)
    return known
  }

  /** Returns the text of a signed stop. */
  stopText(hash: string): string {
    for (const { item } of this.presented)
      if (item.kind === 'statement' && statementHash(readSigned(item.signed).statement) === hash)
        return item.signed
    throw new Error(`a stop that no person signed: ${hash}`)
  }

  /** Returns the first document, which names the place of statements. */
  get first(): PolicyDocument {
    return ([...this.documents.values()][0] as KnownDocument).document
  }
}
