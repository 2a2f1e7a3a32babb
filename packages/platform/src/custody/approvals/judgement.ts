import { actFacts, LIMITS } from '@custody/policy'
import { z } from 'zod'
import { ID_MAX, MESSAGE_MAX } from '../../core/bounds.ts'

const policy = z.strictObject({
  number: z.int().min(1).max(1_000_000_000),
  hash: z.string().max(64),
})
/** What a transfer or a forwarding rule does, as people approve it. */
export const factsShape = actFacts.meta({
  id: 'ApprovalFacts',
  description:
    'Amounts are in the smallest unit, as digits. `contract` is null for a native coin; `fee_max` is the largest fee that any transaction of the transfer may have. A forwarding rule has its limits in `standing`, and `amount` and `fee_max` are null.',
  examples: [
    {
      sub_account: 'main',
      asset: 'ETH',
      network: 'ETH',
      contract: null,
      decimals: 18,
      amount: '600000000000000000',
      to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      tag: null,
      fee_asset: 'ETH',
      fee_decimals: 18,
      fee_max: '100000000000000000',
      standing: null,
      resource: null,
    },
  ],
})

/** One quorum of an act: how many people of a group must approve, and how many have. */
export const needShape = z
  .strictObject({
    group: z.string().max(64).meta({ description: 'Group of the policy document' }),
    k: z
      .int()
      .min(0)
      .max(LIMITS.people)
      .meta({ description: 'Number of its members who must approve' }),
    have: z
      .int()
      .min(0)
      .max(LIMITS.people)
      .meta({ description: 'Number of members whose approvals count for this group' }),
  })
  .meta({ id: 'ApprovalNeed', examples: [{ group: 'treasury', k: 2, have: 1 }] })

/** What people approve: all fields of the signed statement except those of its signer. */
export const statementShape = z
  .strictObject({
    v: z.literal(1),
    mode: z.string().max(20),
    workspace: z.string().max(128),
    nodes: z
      .string()
      .max(64)
      .meta({ description: 'Hash of the identity keys of the signer nodes' }),
    policy,
    id: z.string().max(64).meta({ description: 'ID of the transfer or the forwarding rule' }),
    subject: z.string().max(64).meta({ description: 'Hash of the content of the signed request' }),
    action: z.enum(['transfer', 'refund', 'stake', 'forward']),
    facts: factsShape,
  })
  .meta({ id: 'ApprovalStatement' })

const judgement = z.object({
  policy,
  issued_at: z.int(),
  statement: statementShape,
  effect: z.enum(['allow', 'approve', 'deny']),
  via: z.string().max(64).nullable(),
  needs: z.array(needShape).max(LIMITS.approvalGroups),
  approved_by: z.array(z.string().max(64)).max(LIMITS.people),
  rejected_by: z.array(z.string().max(64)).max(LIMITS.people),
  /** Rules that were tried, with the reason why each does not fit. */
  tried: z
    .array(
      z.object({
        rule: z.string().max(ID_MAX),
        effect: z.string(),
        fits: z.boolean(),
        why: z.string().nullable(),
      }),
    )
    .max(20),
  /** A larger amount could be allowed; absent in earlier versions of the node. */
  fits_above: z.boolean().optional(),
  ignored: z
    .array(z.object({ by: z.string(), key: z.string(), why: z.string() }))
    .max(LIMITS.people),
  refusal: z
    .object({
      code: z.string().max(64),
      message: z.string().max(MESSAGE_MAX),
      frees_at: z.int().nullable(),
    })
    .nullable(),
})
export type Judgement = z.output<typeof judgement>
/** The workspace has no policy. */
export const NO_POLICY = { policy: null } as const
/** Response of a node to `POST /policy/judge` (packages/signer/README.md). */
export const judgementShape = z.union([judgement, z.object({ policy: z.null() })])
export type Statement = z.output<typeof statementShape>
export type Need = z.output<typeof needShape>
