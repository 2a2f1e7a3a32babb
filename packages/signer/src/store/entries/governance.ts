import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import { count, node } from './values.ts'

const workspace = z.string().min(1).max(200)
const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/)
/** Canonical JSON text of a policy document. */
const documentText = z.string().min(2).max(LIMITS.documentBytes)
/** JSON text of a signed statement. */
const signedText = z.string().min(2).max(LIMITS.statementBytes)
const possessions = z.array(signedText).max(LIMITS.people * LIMITS.keysOfPerson)
const approvals = z.array(signedText).max(LIMITS.people)

/**
 * A node's statement that its operator has entered a reset, signed by its identity key. `number` and
 * `hash` of the reset's document; `given_at`: Unix seconds by the node's clock.
 */
export const resetWordSchema = z.strictObject({
  node,
  workspace,
  number: count,
  hash: sha256Hex,
  given_at: count,
  signature: z.string().regex(/^[0-9a-f]{128}$/),
})
/** The statements of all three nodes. */
const resetWords = z.array(resetWordSchema).length(3)

/**
 * What nodes send each other about the policy of a workspace. Documents and statements are texts, so
 * that what people have signed stays as it is.
 */
export const POLICY_ITEMS = {
  /** The first document, with a proof of possession by each key. */
  first: z.strictObject({ workspace, document: documentText, possessions }),
  /** The next document with its approvals. */
  change: z.strictObject({ workspace, document: documentText, possessions, approvals }),
  /** A veto, stop, suspension or revocation. */
  statement: z.strictObject({ workspace, signed: signedText }),
  /** The end of a stop, with the signed stop and the approvals. */
  resumed: z.strictObject({ workspace, stop: signedText, approvals }),
  /** The sender's operator confirms a change that a person whom it removes has vetoed. */
  confirmed: z.strictObject({ workspace, hash: sha256Hex }),
  /** The document of a reset that is in force at the sender, with the proofs of all its keys. */
  reset: z.strictObject({ workspace, document: documentText, possessions, words: resetWords }),
  /** Approvals of one standing rule for forwards, order or enrolment, by different people. */
  approved: z.strictObject({
    workspace,
    approvals: z.array(signedText).min(1).max(LIMITS.approvals),
  }),
}

/**
 * `at_s`: Unix seconds at which the statements of the entry were judged, by the record's clock. It is
 * earlier than the entry itself if a peer had seen the item before it expired.
 */
const judged = { at_s: count }

/** The state by which an entry was judged. */
const judgedBy = {
  /** Unix seconds to which the state had advanced. */
  now_s: count,
  /** Hash of the document in force; null: none. */
  in_force: sha256Hex.nullable(),
}
/**
 * What an entry changes. It is judged once, before it is written, and applied whenever the record is
 * read. Entries of earlier versions have none.
 */
const effectOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject({ ...judgedBy, ...shape }).optional()

/** Name of a person or of a key. */
const name = z.string().min(1).max(200)
const spki = z.string().min(1).max(1000)
const scope = z.string().max(200).nullable()
const factsText = z.string().max(LIMITS.statementBytes)

/** Effects of statements, as `@custody/policy` names their fields. */
const statementEffect = z.discriminatedUnion('type', [
  z.strictObject({
    ...judgedBy,
    type: z.literal('veto'),
    hash: sha256Hex,
    by: name,
    outcome: z.enum(['early', 'ended', 'held']),
    approved_by: z.array(name).max(LIMITS.people),
    at_s: count,
  }),
  z.strictObject({
    ...judgedBy,
    type: z.literal('stop'),
    hash: sha256Hex,
    sub_account: scope,
    by: name,
    at: count,
  }),
  z.strictObject({
    ...judgedBy,
    type: z.literal('suspend'),
    hash: sha256Hex,
    by: name,
    target: z.strictObject({ person: name, key: name }),
    ends_at_s: count,
  }),
  z.strictObject({ ...judgedBy, type: z.literal('revoke'), spki }),
])

/** `policy`: hash of the document under which people approved. `facts`: canonical JSON. */
const approvedEffect = z.discriminatedUnion('type', [
  z.strictObject({
    ...judgedBy,
    type: z.literal('standing'),
    name: z.string().min(1).max(400),
    policy: sha256Hex,
    subject: sha256Hex,
    facts: factsText,
    approvals: z
      .array(
        z.strictObject({
          by: name,
          key: name,
          at: count,
          expires: count,
          spki,
          hash: sha256Hex,
          recorded_at: count,
        }),
      )
      .max(LIMITS.approvals),
  }),
  z.strictObject({
    ...judgedBy,
    type: z.literal('enrolment'),
    api_key: z.string().min(1).max(400),
    number: count,
    policy: sha256Hex,
    facts: factsText,
  }),
])

/** Entries about the policies of workspaces. */
export const GOVERNANCE = {
  /** The first document as this node's operator has entered it. It is not in force yet. */
  'policy-typed': POLICY_ITEMS.first.extend({ ...judged, effect: effectOf({ hash: sha256Hex }) }),
  /** The first document, which two nodes hold: it is in force. */
  'policy-begun': POLICY_ITEMS.first.extend({ ...judged, effect: effectOf({ hash: sha256Hex }) }),
  /** `witnesses`: times at which both other nodes saw it complete, in Unix seconds. */
  'policy-change': POLICY_ITEMS.change.extend({
    ...judged,
    witnesses: z.tuple([count, count]).nullable(),
    effect: effectOf({
      type: z.literal('pending'),
      hash: sha256Hex,
      seen_at_s: count,
      acts_at_s: count,
      approved_for_s: count,
      approved_by: z.array(name).max(LIMITS.people),
      vetoed_by: name.nullable(),
      confirmed_by: z.array(node).max(3),
    }),
  }),
  'policy-statement': POLICY_ITEMS.statement.extend({
    ...judged,
    effect: statementEffect.optional(),
  }),
  'policy-resumed': POLICY_ITEMS.resumed.extend({
    ...judged,
    effect: effectOf({
      type: z.literal('resume'),
      stop: sha256Hex,
      sub_account: scope,
      at: count,
    }),
  }),
  /** `node`: the node whose operator has confirmed it. */
  'policy-confirmed': POLICY_ITEMS.confirmed.extend({
    ...judged,
    node,
    effect: effectOf({ type: z.literal('confirm'), hash: sha256Hex, node }),
  }),
  /**
   * `node`: the node that sent them, or this one. `by_both`: both other nodes had recorded them by
   * `at_s`, while this node was away.
   */
  'policy-approved': POLICY_ITEMS.approved.extend({
    ...judged,
    node,
    by_both: z.boolean(),
    effect: approvedEffect.optional(),
  }),
  /**
   * The operator let this node follow its peers: it has the documents of `chain` (hashes, the first
   * one first) again, and none that differs. `kept`: number of its own documents that remain.
   */
  'policy-followed': z.strictObject({
    workspace,
    ...judged,
    chain: z.array(sha256Hex).min(1),
    effect: effectOf({ kept: count }),
  }),
  /**
   * The operator removed the policy, as the mode `local` permits. All earlier entries about it are
   * void. `removed`: hashes of first documents that peers cannot put in force again.
   */
  'policy-uninstalled': z.strictObject({
    workspace,
    ...judged,
    removed: z.array(sha256Hex).min(1).max(1000),
  }),
  /**
   * The document by which this node's operator wants to replace the one in force. Only the operator
   * of this node enters it, so a restored node does not have it.
   */
  'policy-reset-typed': POLICY_ITEMS.first.extend({
    ...judged,
    effect: effectOf({ hash: sha256Hex, number: count, previous: sha256Hex }),
  }),
  /** The operators of all three nodes have entered the same reset: its seven days begin here. */
  'policy-reset-complete': z.strictObject({
    workspace,
    hash: sha256Hex,
    ...judged,
    words: resetWords,
    effect: effectOf({}),
  }),
  /** This node's operator has withdrawn the reset. */
  'policy-reset-withdrawn': z.strictObject({
    workspace,
    hash: sha256Hex,
    ...judged,
    effect: effectOf({}),
  }),
  /**
   * The document of a reset came into force. `is_known`: this node had to have it by its backup or
   * its peers; otherwise its operator has entered it, and its seven days have passed.
   */
  'policy-reset-begun': POLICY_ITEMS.reset.extend({
    ...judged,
    is_known: z.boolean(),
    effect: effectOf({ hash: sha256Hex }),
  }),
  /**
   * From a backup: hash of the first document, and number and hash of the one in force at that time.
   * The node signs nothing for the workspace before it has them again. `chain`: hashes of all
   * documents up to the one in force, the first one first; absent in backups of earlier versions.
   */
  'policy-known': z.strictObject({
    workspace,
    first: sha256Hex,
    number: count,
    hash: sha256Hex,
    chain: z.array(sha256Hex).optional(),
  }),
}
export type GovernanceKind = keyof typeof GOVERNANCE
