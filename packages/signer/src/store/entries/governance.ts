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
 * `at_s`: Unix seconds at which the entry was judged, by the record's clock. Reading the record
 * judges it again with the same time.
 */
const judged = { at_s: count }

/** Entries about the policies of workspaces. */
export const GOVERNANCE = {
  /** The first document as this node's operator has entered it. It is not in force yet. */
  'policy-typed': POLICY_ITEMS.first.extend(judged),
  /** The first document, which two nodes hold: it is in force. */
  'policy-begun': POLICY_ITEMS.first.extend(judged),
  /** `witnesses`: times at which both other nodes saw it complete, in Unix seconds. */
  'policy-change': POLICY_ITEMS.change.extend({
    ...judged,
    witnesses: z.tuple([count, count]).nullable(),
  }),
  'policy-statement': POLICY_ITEMS.statement.extend(judged),
  'policy-resumed': POLICY_ITEMS.resumed.extend(judged),
  /** `node`: the node whose operator has confirmed it. */
  'policy-confirmed': POLICY_ITEMS.confirmed.extend({ ...judged, node }),
  /**
   * `node`: the node that sent them, or this one. `by_both`: both other nodes had recorded them by
   * `at_s`, while this node was away.
   */
  'policy-approved': POLICY_ITEMS.approved.extend({ ...judged, node, by_both: z.boolean() }),
  /**
   * The operator let this node follow its peers: it has the documents of `chain` (hashes, the first
   * one first) again, and none that differs.
   */
  'policy-followed': z.strictObject({ workspace, ...judged, chain: z.array(sha256Hex).min(1) }),
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
  'policy-reset-typed': POLICY_ITEMS.first.extend(judged),
  /** The operators of all three nodes have entered the same reset: its seven days begin here. */
  'policy-reset-complete': z.strictObject({
    workspace,
    hash: sha256Hex,
    ...judged,
    words: resetWords,
  }),
  /** This node's operator has withdrawn the reset. */
  'policy-reset-withdrawn': z.strictObject({ workspace, hash: sha256Hex, ...judged }),
  /**
   * The document of a reset came into force. `is_known`: this node had to have it by its backup or
   * its peers; otherwise its operator has entered it, and its seven days have passed.
   */
  'policy-reset-begun': POLICY_ITEMS.reset.extend({ ...judged, is_known: z.boolean() }),
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
