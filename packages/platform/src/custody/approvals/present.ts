import { assertion, LIMITS, type CarriedApproval } from '@custody/policy'
import { z } from 'zod'
import { ID_MAX, KEY_MAX, MEMO_MAX, NAME_MAX, SIGNED_MAX } from '../../core/bounds.ts'
import { changeStatementShape, missingShape } from './change-shapes.ts'
import { factsShape, needShape, statementShape } from './judgement.ts'
import { REQUEST_STATES, type ApprovalRequest } from './approval-request.ts'

/** Latest time of a statement, in Unix seconds. */
const SECONDS_MAX = 9_999_999_999

/** The assertion of a passkey, in requests and responses. */
export const assertionShape = assertion.meta({
  id: 'PasskeyAssertion',
  description:
    'Response of a passkey to `navigator.credentials.get`, each field in base64url without padding: `clientDataJSON`, `authenticatorData` and `signature`. Its challenge is the SHA-256 of the bytes that a key would sign.',
})

/** A person's decision, in responses. */
export const decisionShape = z
  .object({
    by: z.string().max(64).meta({ description: 'ID of the person in the policy document' }),
    key: z.string().max(64).meta({ description: 'ID of the key of that person' }),
    decision: z.enum(['approve', 'reject']),
    at: z
      .int()
      .min(0)
      .max(SECONDS_MAX)
      .meta({ description: 'Time of the signature, in Unix seconds' }),
    expires: z
      .int()
      .min(0)
      .max(SECONDS_MAX)
      .meta({ description: 'Time at which it stops counting, in Unix seconds' }),
    signature: z.string().max(KEY_MAX).optional().meta({
      description: 'Base64 of 64 bytes, by a key that signs itself; absent for a passkey',
    }),
    passkey: assertionShape.optional(),
  })
  .meta({
    id: 'ApprovalDecision',
    examples: [
      {
        by: 'bob',
        key: 'k1',
        decision: 'approve',
        at: 1_795_600_000,
        expires: 1_795_686_400,
        signature:
          'kq3mT0bPzV7m0cB7aF2r1sXo9pQeYw8uG5hJ4nL6dKcRtZvM1iN0oPxS3fUyE2aWgHjB7kQ9lDzC5vXbN8mTAw==',
      },
    ],
  })

/** A transfer or a policy change that requires approvals, in lists. */
export const approvalShape = z
  .object({
    id: z
      .string()
      .max(ID_MAX)
      .meta({ description: 'ID of the transfer, the forwarding rule or the policy change' }),
    state: z.enum(REQUEST_STATES).meta({
      description:
        '`ended`: the transfer was cancelled, or failed for another reason, before it was decided; the forwarding rule was deleted, expired, or no longer requires approvals; a policy change ended for another reason than its approvals',
    }),
    action: z.enum(['transfer', 'refund', 'stake', 'forward', 'policy_change']),
    facts: factsShape.nullable().meta({ description: 'null: it is a policy change' }),
    change: z
      .object({
        number: z.int().min(1).max(1_000_000_000),
        hash: z.string().max(64),
        comment: z.string().max(1000),
        missing: missingShape,
      })
      .optional()
      .meta({
        id: 'ApprovalChange',
        description:
          'The proposed policy document; absent for a transfer. `GET /dac/v1/policy/changes/{id}` returns it',
      }),
    needs: z.array(needShape).max(LIMITS.approvalGroups),
    have: z.array(decisionShape).max(2 * LIMITS.approvals),
    memo: z.string().max(MEMO_MAX).optional().meta({
      description:
        'Memo of the transfer; absent if it has none. The signer nodes do not verify it, and no approval signs it',
    }),
    requested_by: z
      .object({
        api_key: z.string().max(ID_MAX),
        name: z
          .string()
          .max(NAME_MAX)
          .nullable()
          .meta({
            description:
              'Name of the person who owns the API key, or the label of the key; absent in events',
          })
          .optional(),
      })
      .optional()
      .meta({
        id: 'ApprovalRequester',
        description:
          'Who requested it, as the platform states; no approval signs it. Absent for a policy change',
      }),
    created_at: z.string(),
    expires_at: z.string().meta({
      description:
        'If it is not approved by then, the transfer fails and a new forwarding rule ends with `APPROVAL_EXPIRED`, and a policy change expires',
    }),
  })
  .meta({ id: 'Approval' })

/** One transfer or policy change that requires approvals, with what an approval signs. */
export const approvalDetailShape = approvalShape
  .extend({
    planned_fee: z.string().max(78).optional().meta({
      description:
        'Network fee that the platform plans for the transfer, in the smallest unit of `facts.fee_asset`, as digits; absent for a forwarding rule and a policy change. It is not part of what an approval signs: the signer nodes permit any fee up to `facts.fee_max`',
    }),
    statement: z.union([statementShape, changeStatementShape]),
    request: z
      .object({
        token: z.string().max(16_384),
        method: z.string().max(10),
        uri: z.string().max(2048),
        body: z.string().max(SIGNED_MAX),
      })
      .meta({
        description:
          'The signed request of the caller, from which an approver can derive the facts again; absent for a policy change',
      })
      .optional(),
  })
  .meta({ id: 'ApprovalDetail' })

/**
 * Converts a request for approvals to its public form.
 * @param names from `requesterNames`; absent: without the requester's name
 */
export function presentApproval(
  request: ApprovalRequest,
  decisions: readonly CarriedApproval[],
  names?: ReadonlyMap<string, string>,
) {
  const { transaction_id: id, state, statement, needs, created_at, expires_at } = request
  const { memo, requested_key: api_key } = request
  return {
    id,
    state,
    action: statement.action,
    facts: statement.facts,
    needs,
    have: decisions.map((decision) => {
      const { id: _, ...shown } = decision
      return shown
    }),
    ...(memo === null || memo === '' ? {} : { memo }),
    ...(api_key === null
      ? {}
      : { requested_by: { api_key, ...(names && { name: names.get(api_key) ?? null }) } }),
    created_at: created_at.toISOString(),
    expires_at: expires_at.toISOString(),
  }
}
