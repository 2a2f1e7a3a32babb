import {
  advance,
  atTime,
  documentHash,
  PolicyError,
  readDocument,
  type Governance,
} from '@custody/policy'
import type { ApprovedEnrolments } from './enrolments.ts'
import type { Reset } from './reset-rules.ts'
import type { StandingRecords } from './standing.ts'
import type { SignedResetWord } from './word.ts'

/** The first document as an operator has entered it or a peer has sent it. */
export interface First {
  readonly hash: string
  readonly document: string
  readonly possessions: readonly string[]
}

/** A document that came into force at this node. Times in Unix seconds. */
interface InForce {
  readonly hash: string
  readonly seen_at_s: number
  readonly acts_at_s: number
  /** What was in force before it; null for the first document. */
  readonly before: Governance | null
  /** Statements of the nodes by which it replaced the one before it; absent for other documents. */
  readonly resetBy?: readonly SignedResetWord[]
}

/** What a node has on record about the policy of a workspace. */
export interface Held {
  /** Null until the first document is in force. */
  readonly governance: Governance | null
  /** Documents that came into force, the first one first. */
  readonly chain: readonly InForce[]
  /** The first document as this node's operator has entered it. */
  readonly typed: First | null
  /** From a backup or from both peers: what this node must have before it signs. */
  readonly known: Known | null
  /**
   * Hashes of first documents that the operator has removed. They come into force again only if the
   * operator enters them.
   */
  readonly removed: readonly string[]
  /** The reset that this node's operator has entered, and that waits. */
  readonly reset: Reset | null
  /** Hashes of all resets that this node's operator has entered, according to this record. */
  readonly enteredResets: readonly string[]
  /** Approvals of standing rules for forwards, and of orders about gas tanks. */
  readonly approved: StandingRecords
  /** Enrolments that people have approved. */
  readonly enrolments: ApprovedEnrolments
}

/** Number and hash of a policy in force, and hash of the workspace's first document. */
export interface Known {
  readonly first: string
  readonly number: number
  readonly hash: string
  /** Hashes of all documents up to that policy; absent if an earlier version made the backup. */
  readonly chain?: string[] | undefined
}

export const NOTHING_HELD: Held = {
  governance: null,
  chain: [],
  typed: null,
  known: null,
  removed: [],
  reset: null,
  enteredResets: [],
  approved: new Map(),
  enrolments: new Map(),
}

/** Returns whether the node must have a policy before it signs, and does not have it yet. */
export const isBehindKnown = ({ chain, known }: Pick<Held, 'chain' | 'known'>): boolean =>
  known !== null && chain[known.number - 1]?.hash !== known.hash

/** Returns the hash of the document with a number that this node must have; undefined: any. */
const knownHash = (known: Known | null, number: number): string | undefined =>
  known?.number === number ? known.hash : known?.chain?.[number - 1]

/** Returns whether a document is one that this node must have. */
export const isKnown = ({ known }: Pick<Held, 'known'>, number: number, hash: string): boolean =>
  knownHash(known, number) === hash

/** Returns whether this node must have a document, and does not have it yet. @throws PolicyError */
export function isOfBackup(held: Held, text: string): boolean {
  if (!isBehindKnown(held)) return false
  const document = readDocument(text)
  return isKnown(held, document.number, documentHash(document))
}

/**
 * Checks that a document is not another one with the number of a policy that this node had before
 * its restoration.
 * @throws PolicyError
 */
export function assertNotAnother({ known }: Held, text: string): void {
  if (known === null) return
  const document = readDocument(text)
  const { number } = document
  const hash = knownHash(known, number)
  if (hash === undefined || documentHash(document) === hash) return
  throw new PolicyError(
    'OTHER_POLICY',
    'document',
    `is not the policy ${number} that this node must have by its backup or its peers`,
  )
}

/** Returns the state of the policy in force. @throws PolicyError `OTHER_POLICY` if there is none */
export function governanceOf({ governance }: Held): Governance {
  if (governance === null)
    throw new PolicyError('OTHER_POLICY', '', 'The workspace has no policy in force')
  return governance
}

/**
 * Returns the number of documents of this node that remain if it follows its peers.
 * @param chain hashes of the peers' documents, the first one first
 * @throws PolicyError `OTHER_POLICY` if the peers have another first document
 */
export function keptBy({ chain: own, governance }: Held, chain: readonly string[]): number {
  const differs = own.findIndex(({ hash }, at) => hash !== chain[at])
  if (differs === 0 || governance === null)
    throw new PolicyError('OTHER_POLICY', 'hash', 'The peers have another first document')
  return differs < 0 ? own.length : differs
}

/** Returns the policy that a node must have which follows its peers. */
export const knownByPeers = (chain: readonly string[]): Known => ({
  first: chain[0]!,
  number: chain.length,
  hash: chain.at(-1)!,
  chain: [...chain],
})

/**
 * Returns the policy that a backup contains: the one in force, or the one that this node had before
 * its restoration, until it has it again. Null if the workspace has no policy.
 */
export function knownOf(held: Held): Known | null {
  const { governance, chain, known } = held
  if (governance === null || isBehindKnown(held)) return known
  const { document, hash } = governance.policy
  const hashes = chain.map((each) => each.hash)
  return { first: hashes[0]!, number: document.number, hash, chain: hashes }
}

/**
 * Returns what a node holds at a time in Unix seconds. What was in force before a document is stated as
 * of the time at which that document acts, so that the result does not depend on earlier calls.
 */
export function heldAt(held: Held, now_s: number): Held {
  if (held.governance === null) return held
  const governance = advance(held.governance, now_s)
  if (governance === held.governance) return held
  const { next } = held.governance
  if (governance.policy === held.governance.policy || next === null) return { ...held, governance }
  const { seen_at_s, acts_at_s } = next
  const { hash } = governance.policy
  const before = { ...atTime(held.governance, acts_at_s), next: null }
  return { ...held, governance, chain: [...held.chain, { hash, seen_at_s, acts_at_s, before }] }
}
