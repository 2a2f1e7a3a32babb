import {
  advance,
  confirm,
  documentHash,
  install,
  PolicyError,
  propose,
  readDocument,
  readSigned,
  reinstate,
  resume,
  revoke,
  statementHash,
  stop,
  suspend,
  verifyStatement,
  veto,
  type Governance,
  type Place,
  type PolicyRegistry,
  type Present,
  type ProvenDocument,
  type SignedStatement,
} from '@custody/policy'
import { isOfEnrolment, withApprovedEnrolment, type ApprovedEnrolments } from './enrolments.ts'
import type { GovernanceEntry } from './items.ts'
import { isSignedNatively } from './native-verify.ts'
import { afterReset, hashOfText, isReady, resetOf, type Reset } from './reset-rules.ts'
import type { SignedResetWord } from './word.ts'
import { withApproved, type StandingRecords } from './standing.ts'

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

/** What a node needs to judge entries. */
export interface Rules {
  readonly registry: PolicyRegistry
  readonly place: Omit<Place, 'workspace'>
  /** The entries were judged before, and are read from the record. */
  readonly isOnRecord?: boolean
}

/** An entry that is about to be recorded, or that was read. */
export type Judged = {
  [K in GovernanceEntry['kind']]: Pick<Extract<GovernanceEntry, { kind: K }>, 'kind' | 'body'>
}[GovernanceEntry['kind']]

/** Returns what a node holds at a time in Unix seconds. */
export function heldAt(held: Held, now_s: number): Held {
  if (held.governance === null) return held
  const governance = advance(held.governance, now_s)
  if (governance === held.governance) return held
  const { next } = held.governance
  if (governance.policy === held.governance.policy || next === null) return { ...held, governance }
  const { seen_at_s, acts_at_s } = next
  const { hash } = governance.policy
  const before = { ...held.governance, next: null }
  return { ...held, governance, chain: [...held.chain, { hash, seen_at_s, acts_at_s, before }] }
}

const verify: NonNullable<Present['verify']> = (policy, signed, context) =>
  verifyStatement(policy, signed, { ...context, isSigned: isSignedNatively })

const signedOf = (texts: readonly string[]): SignedStatement[] => texts.map(readSigned)

const provenOf = (body: { document: string; possessions: readonly string[] }): ProvenDocument => ({
  document: readDocument(body.document),
  possessions: signedOf(body.possessions),
})

/** Returns the state in which a first document is in force. @throws PolicyError */
function firstOf(
  body: { workspace: string; document: string; possessions: readonly string[] },
  { registry, place, isOnRecord = false }: Rules,
  now_s: number,
): Governance {
  const { workspace } = body
  return install(
    provenOf(body),
    { ...place, workspace },
    { registry },
    { now_s, isOnRecord, verify },
  )
}

/**
 * Applies an entry. A change that comes into force, or that will, ends a reset: enough people are left
 * to change the policy.
 * @returns the same value if the entry changes nothing
 * @throws PolicyError if the entry is refused
 */
export function withEntry(before: Held, entry: Judged, rules: Rules): Held {
  const held = entryApplied(before, entry, rules)
  const { reset, governance } = held
  if (reset === null) return held
  const isOpen = governance?.next === null && governance.policy.hash === reset.previous
  return isOpen ? held : { ...held, reset: null }
}

function entryApplied(before: Held, entry: Judged, rules: Rules): Held {
  if (entry.kind === 'policy-known') {
    const { first, number, hash, chain } = entry.body
    // A restoration that is repeated with an older file does not replace the later policy.
    if (before.known !== null && before.known.number >= number) return before
    return { ...before, known: { first, number, hash, chain } }
  }
  if (entry.kind === 'policy-change') assertNotAnother(before, entry.body.document)
  const { at_s: now_s } = entry.body
  const held = heldAt(before, now_s)
  if (entry.kind === 'policy-followed') return followed(held, entry.body.chain)
  if (entry.kind === 'policy-uninstalled') return { ...NOTHING_HELD, removed: entry.body.removed }
  if (entry.kind === 'policy-typed' || entry.kind === 'policy-begun')
    return withFirst(before, entry, rules)
  if (entry.kind === 'policy-approved') return withApprovals(held, entry.body) ?? before
  if (isOfReset(entry)) return withReset(held, entry, rules) ?? before
  const governance =
    entry.kind === 'policy-change' && isOfBackup(held, entry.body.document)
      ? reinstated(governanceOf(held), entry.body, rules)
      : applied(governanceOf(held), entry, rules)
  return governance === held.governance ? before : { ...held, governance }
}

/**
 * Checks that a document is not another one with the number of a policy that this node had before
 * its restoration.
 * @throws PolicyError
 */
function assertNotAnother({ known }: Held, text: string): void {
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

/** Returns whether this node must have a document, and does not have it yet. */
function isOfBackup(held: Held, text: string): boolean {
  if (!isBehindKnown(held)) return false
  const document = readDocument(text)
  return isKnown(held, document.number, documentHash(document))
}

/**
 * Returns what a node holds after its operator let it follow its peers: without the documents that
 * they do not have, and without everything that was recorded under those. It then reads from its
 * peers what they recorded instead.
 * @param chain hashes of the peers' documents, the first one first
 * @returns the same value if that changes nothing
 * @throws PolicyError `OTHER_POLICY` if the peers have another first document
 */
function followed(held: Held, chain: readonly string[]): Held {
  const differs = held.chain.findIndex(({ hash }, at) => hash !== chain[at])
  if (differs === 0 || held.governance === null)
    throw new PolicyError('OTHER_POLICY', 'hash', 'The peers have another first document')
  const known = { first: chain[0]!, number: chain.length, hash: chain.at(-1)!, chain: [...chain] }
  if (differs > 0) {
    const governance = held.chain[differs]!.before
    return { ...held, governance, chain: held.chain.slice(0, differs), known }
  }
  return isBehindKnown(held) || isBehindKnown({ ...held, known }) ? { ...held, known } : held
}

/** Applies a change that this node must have, so that its approvals may have expired. */
function reinstated(
  governance: Governance,
  body: Extract<Judged, { kind: 'policy-change' }>['body'],
  { registry }: Rules,
): Governance {
  const proposal = { ...provenOf(body), approvals: signedOf(body.approvals) }
  return reinstate(governance, proposal, { registry }, { now_s: body.at_s, verify })
}

function withFirst(
  held: Held,
  { kind, body }: Extract<Judged, { kind: 'policy-typed' | 'policy-begun' }>,
  rules: Rules,
): Held {
  if (held.governance !== null) {
    if (
      held.chain[0]?.hash === firstOf(body, { ...rules, isOnRecord: true }, body.at_s).policy.hash
    )
      return held
    throw new PolicyError('PENDING', '', 'Another first document is in force')
  }
  const { at_s } = body
  const governance = firstOf(body, rules, at_s)
  const { hash } = governance.policy
  if (kind === 'policy-begun') {
    const chain = [{ hash, seen_at_s: at_s, acts_at_s: at_s, before: null }]
    return { ...held, governance, chain }
  }
  if (held.typed?.hash === hash) return held
  const { document, possessions } = body
  const removed = held.removed.filter((each) => each !== hash)
  return { ...held, removed, typed: { hash, document, possessions } }
}

const RESETS = [
  'policy-reset-typed',
  'policy-reset-complete',
  'policy-reset-withdrawn',
  'policy-reset-begun',
] as const
type OfReset = Extract<Judged, { kind: (typeof RESETS)[number] }>

const isOfReset = (entry: Judged): entry is OfReset => RESETS.some((kind) => kind === entry.kind)

/**
 * Applies an entry about a reset.
 * @returns null if it changes nothing
 * @throws PolicyError
 */
function withReset(held: Held, entry: OfReset, rules: Rules): Held | null {
  const { kind, body } = entry
  const governance = governanceOf(held)
  if (kind === 'policy-reset-begun') return resetBegun(held, body, rules)
  if (kind === 'policy-reset-typed') {
    if (isBehindKnown(held))
      throw new PolicyError('OTHER_POLICY', '', 'This node does not have its latest policy yet')
    const reset = resetOf(governance, body, { ...rules, verify }, body.at_s)
    if (held.reset?.hash === reset.hash) return null
    return { ...held, reset, enteredResets: [...held.enteredResets, reset.hash] }
  }
  const { reset } = held
  if (reset?.hash !== body.hash)
    throw new PolicyError('OTHER_POLICY', 'hash', 'is not the hash of the reset entered here')
  if (kind === 'policy-reset-withdrawn') return { ...held, reset: null }
  if (reset.complete !== null) return null
  return { ...held, reset: { ...reset, complete: { at_s: body.at_s, words: body.words } } }
}

/**
 * Puts the document of a reset in force: seven days after the statements of all three nodes, or at
 * once if this node must have it.
 * @returns null if it was in force here already
 * @throws PolicyError `NOT_ALLOWED` if neither is true
 */
function resetBegun(
  held: Held,
  body: Extract<OfReset, { kind: 'policy-reset-begun' }>['body'],
  rules: Rules,
): Held | null {
  const { at_s, words, is_known } = body
  const hash = hashOfText(body.document)
  if (held.chain.some((each) => each.hash === hash)) return null
  const before = governanceOf(held)
  const { reset } = held
  const isAllowed = is_known
    ? isOfBackup(held, body.document)
    : reset?.hash === hash && isReady(reset, at_s)
  if (!isAllowed)
    throw new PolicyError(
      'NOT_ALLOWED',
      '',
      'The operators of all nodes have not entered this reset',
    )
  const governance = afterReset(before, body, { ...rules, verify }, at_s)
  const inForce = { hash, seen_at_s: at_s, acts_at_s: at_s, before: { ...before, next: null } }
  return { ...held, governance, chain: [...held.chain, { ...inForce, resetBy: words }] }
}

function governanceOf({ governance }: Held): Governance {
  if (governance === null)
    throw new PolicyError('OTHER_POLICY', '', 'The workspace has no policy in force')
  return governance
}

/**
 * Applies approvals of a standing rule, of an order, or of an enrolment.
 * @returns null if they change nothing
 * @throws PolicyError
 */
function withApprovals(
  held: Held,
  body: Extract<Judged, { kind: 'policy-approved' }>['body'],
): Held | null {
  const documents = { governance: governanceOf(held), chain: held.chain }
  if (isOfEnrolment(body.approvals)) {
    const enrolments = withApprovedEnrolment(documents, held.enrolments, body, verify)
    return enrolments === held.enrolments ? null : { ...held, enrolments }
  }
  const approved = withApproved(documents, held.approved, body, verify)
  return approved === held.approved ? null : { ...held, approved }
}

type Later = Exclude<
  Judged['kind'],
  | 'policy-typed'
  | 'policy-begun'
  | 'policy-known'
  | 'policy-followed'
  | 'policy-uninstalled'
  | OfReset['kind']
  | 'policy-approved'
>

function applied(
  governance: Governance,
  entry: Extract<Judged, { kind: Later }>,
  { registry, isOnRecord = false }: Rules,
): Governance {
  const present: Present = { now_s: entry.body.at_s, isOnRecord, verify }
  switch (entry.kind) {
    case 'policy-change': {
      const { approvals, witnesses } = entry.body
      const proposal = { ...provenOf(entry.body), approvals: signedOf(approvals) }
      return propose(governance, proposal, { registry }, present, witnesses)
    }
    case 'policy-statement':
      return withStatement(governance, readSigned(entry.body.signed), present)
    case 'policy-resumed': {
      const { stop: stopped, approvals } = entry.body
      const { statement } = readSigned(stopped)
      if (statement.kind !== 'stop')
        throw new PolicyError('SHAPE', 'stop.kind', 'stop.kind must be stop')
      const { sub_account, at } = statement
      const named = { hash: statementHash(statement), sub_account, at }
      return resume(governance, named, signedOf(approvals), present)
    }
    case 'policy-confirmed':
      return confirm(governance, entry.body.hash, entry.body.node)
  }
}

function withStatement(
  governance: Governance,
  signed: SignedStatement,
  present: Present,
): Governance {
  switch (signed.statement.kind) {
    case 'veto':
      return veto(governance, signed, present)
    case 'stop':
      return stop(governance, signed, present)
    case 'suspend':
      return suspend(governance, signed, present)
    case 'revoke':
      return revoke(governance, signed, present)
    default:
      throw new PolicyError('SHAPE', 'kind', 'must be veto, stop, suspend or revoke')
  }
}
