import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import type { Act } from '../act.ts'
import { name, seconds } from '../document/fields.ts'
import { PolicyError } from '../error.ts'
import type { Approval } from '../evaluation/approvals.ts'
import type { Policy } from '../evaluation/compile.ts'
import { factsOf } from '../facts.ts'
import type { StatementOf } from './shapes.ts'
import {
  assertSigned,
  assertStatement,
  proofFields,
  type Proof,
  type StatementContext,
} from './verify.ts'
import { LIMITS } from '../limits.ts'

/**
 * A person's decision about an act, as orders carry it. It contains only what its reader cannot
 * derive: the reader builds all other fields of the statement from the act and from the document.
 */
export const carriedApproval = z.strictObject({
  /** Public ID of the act. */
  id: text(100),
  decision: z.enum(['approve', 'reject']),
  by: name,
  key: name,
  /** Unix seconds. */
  at: seconds,
  /** Unix seconds. */
  expires: seconds,
  ...proofFields,
})
export type CarriedApproval = z.output<typeof carriedApproval>

/** Returns the statement by which a person approves or rejects an act under a document. */
export function approvalStatement(
  { document, hash, registry }: Policy,
  act: Act,
  { decision, by, key, at, expires }: Omit<CarriedApproval, 'id' | keyof Proof>,
): StatementOf<'approval'> {
  const { mode, workspace, nodes, number } = document
  return {
    kind: 'approval',
    v: 1,
    mode,
    workspace,
    nodes,
    by,
    key,
    at,
    expires,
    policy: { number, hash },
    id: act.id,
    subject: act.subject,
    decision,
    action: act.action,
    facts: factsOf(act, registry),
  }
}

/** A decision that counts for nothing, with the reason. */
export interface Ignored {
  readonly by: string
  readonly key: string
  readonly why: string
}

/** Decisions about an act whose signatures have been verified. */
export interface Decisions {
  readonly approvals: readonly Approval[]
  readonly rejections: readonly Approval[]
  readonly ignored: readonly Ignored[]
}

/**
 * Greatest number of verified proofs that are remembered of one act: every approver may have approved
 * and rejected it a few times.
 */
const VERIFIED_MAX = 8 * LIMITS.approvals

/** What verification of decisions needs besides the document and the act. */
export interface DecisionContext extends StatementContext {
  /**
   * Names of the decisions about this act under this document whose signatures were verified. Those
   * are not verified again; everything that depends on the time and on suspended keys is. The holder
   * passes the same set only with the same act and document. Absent: nothing is remembered.
   */
  readonly verified?: Set<string>
}

/**
 * Verifies decisions about an act. One that does not verify counts for nothing, as if it were absent.
 * @param carried decisions about any acts; those about other acts are left out
 */
export function verifyDecisions(
  policy: Policy,
  act: Act,
  carried: readonly CarriedApproval[],
  context: DecisionContext,
): Decisions {
  const found = { approve: [] as Approval[], reject: [] as Approval[], ignored: [] as Ignored[] }
  const { verified } = context
  for (const { id, signature, passkey, ...decision } of carried) {
    if (id !== act.id) continue
    const { by, key, at, expires } = decision
    try {
      const statement = approvalStatement(policy, act, decision)
      const signer = assertStatement(policy, statement, context)
      // The statement is determined by the document, the act and these fields.
      const name = JSON.stringify([decision.decision, by, key, at, expires, signature, passkey])
      if (!verified?.has(name)) {
        assertSigned(signer, statement, { signature, passkey }, context)
        if (verified && verified.size < VERIFIED_MAX) verified.add(name)
      }
      found[decision.decision].push({ by, key, at, expires })
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      found.ignored.push({ by, key, why: error.message })
    }
  }
  return { approvals: found.approve, rejections: found.reject, ignored: found.ignored }
}
