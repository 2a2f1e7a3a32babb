import { API_ROLES } from '@custody/request-auth/roles'
import { z } from 'zod'
import { proofSchema } from '../../envelope.ts'
import { count, digits, node, nodeSignatures } from './values.ts'

/**
 * A peer's head with its own signature, absent in records of earlier versions. A later version of
 * the envelope must still be able to read the stored form.
 */
export const seenHead = z.strictObject({
  node,
  height: count,
  hash: z.string(),
  generation: count,
  proof: proofSchema.nullable().optional(),
})

const fingerprint = z.string().regex(/^[0-9a-f]{64}$/)
/** Reason of a ban: the node was proven to cheat, or this node's operator ordered the ban. */
const cause = z.enum(['cheat', 'operator'])

/**
 * A node's statement that it has banned a peer. `identity`: the fingerprint of the banned key. `at`
 * in Unix ms.
 */
export const banStatementSchema = z.strictObject({
  node,
  identity: fingerprint,
  by: node,
  at: count,
  reason: z.string().max(200),
  cause,
})
export type BanStatement = z.infer<typeof banStatementSchema>

/** Entries about orders of operators, callers, and the two other nodes. */
export const PEOPLE = {
  /** Rule 5: definition of each network and ticker at this node, by name. */
  registry: z.strictObject({ frozen: z.record(z.string(), z.string()) }),
  enrol: z.strictObject({
    api_key: z.string(),
    public_key_pem: z.string(),
    role: z.enum(API_ROLES),
    workspace: z.string(),
    sub_account: count,
    /**
     * Absent for enrolments from before names were bound; null if such an enrolment was restored
     * from a backup.
     */
    sub_account_name: z.string().nullable().optional(),
    /**
     * Number of the policy in force at the enrolment, if that policy requires approvals of
     * enrolments; absent: the enrolment requires none.
     */
    approval_policy: count.optional(),
    /** Person of policy documents who owns the API key; absent: the operator named none. */
    person: z.string().optional(),
  }),
  revoke: z.strictObject({ api_key: z.string() }),
  'sub-account': z.strictObject({ workspace: z.string(), name: z.string(), index: count }),
  /** The platform's announcement that deposit addresses up to `below` belong to a sub-account. */
  'address-mark': z.strictObject({
    workspace: z.string(),
    network: z.string(),
    sub_account: count,
    below: count,
  }),
  'sub-account-set': z.strictObject({
    workspace: z.string(),
    name: z.string(),
    index: count,
    certificates: nodeSignatures,
  }),
  drain: z.strictObject({
    order: z.string(),
    workspace: z.string(),
    network: z.string(),
    to_address: z.string(),
    expires_at: count,
  }),
  'tank-stake': z.strictObject({
    order: z.string(),
    workspace: z.string(),
    network: z.string(),
    action: z.enum(['stake', 'unstake', 'release']),
    /** Null, and the amount 0, for a release. */
    resource: z.enum(['ENERGY', 'BANDWIDTH']).nullable(),
    amount: digits,
    expires_at: count,
  }),
  /**
   * Recovery order for a node without its platform, which signs nothing else. Amount in the
   * smallest native unit, for one transaction.
   */
  recover: z.strictObject({
    order: z.string(),
    workspace: z.string(),
    network: z.string(),
    to_address: z.string(),
    tag: z.string().nullable(),
    fee_max: digits,
    expires_at: count,
  }),
  /**
   * `identity`: the fingerprint of the banned key; absent in records of earlier versions. No cause:
   * a proven cheat. `at`: the time of the ban, if a restored node writes it again.
   */
  ban: z.strictObject({
    node,
    reason: z.string(),
    identity: fingerprint.optional(),
    cause: cause.optional(),
    at: count.optional(),
  }),
  /**
   * A peer's signed statement that it has banned the other peer. It does not ban anyone at this
   * node.
   */
  'ban-told': z.strictObject({
    ...banStatementSchema.shape,
    signature: z.string().regex(/^[0-9a-f]{128}$/),
  }),
  /** Written when a peer was restored. */
  head: seenHead,
  backup: z.strictObject({ keys: count, made_at: count }),
  restoring: z.strictObject({ made_at: count }),
  /** Shares were restored for a recovery only: this record never serves a platform. */
  recovering: z.strictObject({ made_at: count }),
  /**
   * `without`: the peer whose record was not read; `dropped`: restrictions of one peer, as
   * `NODE:HEIGHT`, that the operator dropped.
   */
  restored: z.strictObject({
    generation: count,
    not_before: count,
    without: node.optional(),
    dropped: z.array(z.string().max(32)).max(1000).optional(),
  }),
  /** All policies of a peer were read since this node was restored. */
  'policy-heard': z.strictObject({ node }),
  /** A peer has claimed this position of its policies for a minute, and its answers contradict it. */
  'policy-unproven': z.strictObject({ node, generation: count, height: count }),
  /**
   * The operator lets this node sign by the document with this hash, and its successors, although a
   * peer was not read. `late`: number of the later document that this node knew to have missed; 0:
   * none.
   */
  'policy-accepted': z.strictObject({
    workspace: z.string().min(1).max(200),
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    late: count,
  }),
  /**
   * The operator's repair of a clock that had leapt ahead: requests issued before `to` are
   * rejected. Unix ms.
   */
  clock: z.strictObject({ from: count, to: count }),
}
