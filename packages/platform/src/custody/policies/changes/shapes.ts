import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import { ID_MAX, MESSAGE_MAX } from '../../../core/bounds.ts'
import { changeStatementShape, missingShape } from '../../approvals/change-shapes.ts'
import { needShape } from '../../approvals/judgement.ts'
import { decisionShape } from '../../approvals/present.ts'
import { timeOf } from '../policy-in-force.ts'
import { documentShape, heldShape, policyHash, policyNumber } from '../shapes.ts'
import { CHANGE_STATES, statementFields, type PolicyChange } from './change.ts'
import type { Collected } from './collected.ts'

/** Greatest number of differences of a change. */
export const DIFFERENCES_MAX = 1000
export const WARNINGS_MAX = 1000
export const COMMENT_MAX = 1000
const SENTENCE = 'The rule daily is removed.'

/** A proposed change, in lists and events. */
export const changeShape = z
  .object({
    id: z
      .string()
      .max(ID_MAX)
      .meta({ description: 'ID of the change, by which people approve it' }),
    state: z.enum(CHANGE_STATES).meta({
      description:
        '`open`: approvals or proofs are missing; `approved`: they are complete, and the nodes do not hold it yet; `held`: two nodes hold it until `acts_at`; `in_force`; `rejected`: a person vetoed it before the nodes held it; `vetoed`: it was vetoed while the nodes held it; `refused`: two nodes refuse it; `expired`; `ended`: another document came into force',
    }),
    number: policyNumber,
    hash: policyHash,
    previous: policyHash.meta({ description: 'Hash of the document that it changes' }),
    comment: z
      .string()
      .max(COMMENT_MAX)
      .meta({ examples: ['Raise the daily limit'] }),
    changes: z
      .array(
        z
          .object({
            path: z
              .string()
              .max(200)
              .meta({ examples: ['rules.daily'] }),
            tendency: z.enum(['widens', 'narrows', 'same', 'unknown']).meta({
              description: 'Whether more or less passes; `unknown`: this cannot be decided',
            }),
            sentence: z
              .string()
              .max(LIMITS.documentBytes)
              .meta({ examples: [SENTENCE] }),
          })
          .meta({
            id: 'PolicyDifference',
            examples: [{ path: 'rules.daily', tendency: 'narrows', sentence: SENTENCE }],
          }),
      )
      .max(DIFFERENCES_MAX),
    needs: z.array(needShape).max(LIMITS.approvalGroups),
    missing: missingShape,
    acts_at: z.string().max(30).meta({
      description:
        'Time from which it is in force. While approvals are missing, it can be later than this',
    }),
    held: heldShape,
    reason: z
      .string()
      .max(MESSAGE_MAX)
      .nullable()
      .meta({
        description: 'Why it ended, or why the nodes do not hold it yet',
        examples: ['signer 2: PENDING: Another change is pending; it can be vetoed'],
      }),
    created_at: z.string(),
    expires_at: z.string().meta({
      description: 'Time at which it expires if its approvals are not complete',
    }),
  })
  .meta({ id: 'PolicyChange' })

const warningsShape = z
  .array(
    z
      .object({
        path: z
          .string()
          .max(200)
          .meta({ examples: ['groups.admins'] }),
        message: z.string().max(2000),
      })
      .meta({ id: 'PolicyWarning' }),
  )
  .max(WARNINGS_MAX)
  .meta({ description: 'What a reviewer should check; nothing prevents the change' })

const DECISIONS_MAX = 500

/** One proposed change. */
export const changeDetailShape = changeShape
  .extend({
    document: documentShape,
    warnings: warningsShape,
    statement: changeStatementShape,
    have: z
      .array(decisionShape)
      .max(DECISIONS_MAX)
      .meta({ description: 'Approvals and rejections, the latest first' }),
  })
  .meta({ id: 'PolicyChangeDetail' })

/** Converts a change to its public form in lists. */
export const presentChange = (change: PolicyChange) => ({
  id: change.id,
  state: change.state,
  number: change.number,
  hash: change.hash,
  previous: change.previous,
  comment: change.comment,
  changes: change.changes,
  needs: change.needs,
  missing: change.missing,
  acts_at: timeOf(change.nodes_act_at ?? change.acts_at),
  held: change.held,
  reason: change.reason,
  created_at: change.created_at.toISOString(),
  expires_at: change.expires_at.toISOString(),
})

/** Returns the decisions of people about a change. */
export const decisionsOf = (collected: readonly Collected[]) =>
  collected.flatMap(({ signed: { statement, ...proof } }) =>
    statement.kind === 'change' || statement.kind === 'veto'
      ? [
          {
            by: statement.by,
            key: statement.key,
            decision: statement.kind === 'change' ? ('approve' as const) : ('reject' as const),
            at: statement.at,
            expires: statement.expires,
            ...proof,
          },
        ]
      : [],
  )

/** Converts a change to its public form with everything that a person needs to decide. */
export const presentChangeDetail = (change: PolicyChange, collected: readonly Collected[]) => ({
  ...presentChange(change),
  document: JSON.parse(change.document) as Record<string, unknown>,
  warnings: change.warnings,
  statement: statementFields(change),
  have: decisionsOf(collected).slice(0, DECISIONS_MAX),
})
