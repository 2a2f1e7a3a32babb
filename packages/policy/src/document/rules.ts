import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { LIMITS } from '../limits.ts'
import {
  addressText,
  amounts,
  apiKey,
  assetName,
  distinct,
  name,
  networkCode,
  subAccountName,
} from './fields.ts'
import { approvals } from './people.ts'

/** Acts that rules judge. */
export const ACTIONS = ['transfer', 'refund', 'forward', 'stake'] as const
export type Action = (typeof ACTIONS)[number]
const action = z.enum(ACTIONS, `must be one of ${ACTIONS.join(', ')}`)

const listed = z.strictObject({
  network: networkCode,
  address: addressText,
  tag: text(200).optional(),
  any_tag: z.literal(true).optional(),
})

/** Destinations: the listed addresses and the own addresses. At least one of the two fields. */
const destinations = z
  .strictObject({
    addresses: z
      .array(listed)
      .min(1, 'must not be empty')
      .max(LIMITS.matchEntries)
      .refine(
        (value) => value.every((each) => each.tag === undefined || each.any_tag === undefined),
        'must not have tag and any_tag in one entry',
      )
      .optional(),
    own: z.enum(['sub_account', 'workspace'], 'must be sub_account or workspace').optional(),
  })
  .refine(
    (value) => value.addresses !== undefined || value.own !== undefined,
    'must have addresses or own',
  )

const subAccounts = z.union(
  [distinct(subAccountName, LIMITS.matchEntries), z.strictObject({ prefix: subAccountName })],
  'must be a list of sub-accounts, or {"prefix": …}',
)

const matchFields = {
  networks: distinct(networkCode, LIMITS.matchEntries).optional(),
  api_keys: distinct(apiKey, LIMITS.matchEntries).optional(),
  people: distinct(name, LIMITS.people).optional(),
  sub_accounts: subAccounts.optional(),
  sub_accounts_not: subAccounts.optional(),
  to: z
    .union([z.literal('any'), destinations], 'must be "any", or an object with addresses or own')
    .optional(),
}
const actions = distinct(action, ACTIONS.length)
const assets = z.union(
  [z.literal('any'), distinct(assetName, LIMITS.matchEntries)],
  'must be a list of assets, or "any"',
)

/** An `allow` names its actions and assets, so that it never includes those of later releases. */
const allowMatch = z.strictObject({ action: actions, assets, ...matchFields })
/** In all other rules, an absent field includes everything. */
const match = z.strictObject({
  action: actions.optional(),
  assets: assets.optional(),
  ...matchFields,
})

const amountRange = z
  .strictObject({ min: amounts.optional(), max: amounts.optional() })
  .refine((value) => value.min !== undefined || value.max !== undefined, 'must have min or max')

/** Part of a window of the whole workspace that one sub-account may use. */
const share = z
  .string()
  .regex(/^(?:1|0\.(?!0+$)\d{1,4})$/, 'must be a decimal above 0 and at most 1, such as "0.25"')
  .meta({ maxLength: 6 })

const window = z
  .strictObject({
    name,
    hours: z.int().min(1).max(LIMITS.windowHours, `must be at most ${LIMITS.windowHours}`),
    per: z.enum(
      ['workspace', 'sub_account', 'api_key', 'destination'],
      'must be workspace, sub_account, api_key or destination',
    ),
    max: amounts.optional(),
    count: z.int().min(1).max(1_000_000).optional(),
    share: share.optional(),
  })
  .refine((value) => value.max !== undefined || value.count !== undefined, 'must have max or count')
  .refine(
    (value) => value.share === undefined || value.per === 'workspace',
    'must have a share only if per is workspace',
  )

const windows = z
  .array(window)
  .min(1, 'must not be empty')
  .max(LIMITS.windowsOfRule, `must have at most ${LIMITS.windowsOfRule} windows`)
  .refine(
    (value) => new Set(value.map((each) => each.name)).size === value.length,
    'must not use the name of a window twice',
  )

const quorum = {
  approvals,
  approval_s: z.int().min(60).max(LIMITS.approvalS).optional(),
  initiator: z.boolean().optional(),
}

const allowRule = z
  .strictObject({
    id: name,
    effect: z.literal('allow'),
    match: allowMatch,
    amount: amountRange.optional(),
    fee_max: amounts.optional(),
    windows: windows.optional(),
    approvals: approvals.optional(),
    approval_s: quorum.approval_s,
    initiator: quorum.initiator,
  })
  .refine(
    (rule) =>
      rule.approvals !== undefined ||
      (rule.approval_s === undefined && rule.initiator === undefined),
    'must have approval_s and initiator only together with approvals',
  )
const requireRule = z.strictObject({
  id: name,
  effect: z.literal('require'),
  match,
  amount: amountRange.optional(),
  ...quorum,
})
const denyRule = z.strictObject({
  id: name,
  effect: z.literal('deny'),
  match,
  amount: amountRange.optional(),
})
const limitRule = z.strictObject({
  id: name,
  effect: z.literal('limit'),
  match,
  windows,
  above: z.union(
    [z.literal('deny'), z.strictObject(quorum)],
    'must be "deny", or an object with approvals',
  ),
})

/** One rule of a policy. The order of the rules has no meaning. */
export const rule = z.discriminatedUnion('effect', [allowRule, requireRule, denyRule, limitRule])

export type Rule = z.output<typeof rule>
export type AllowRule = z.output<typeof allowRule>
export type LimitRule = z.output<typeof limitRule>
export type Match = z.output<typeof match>
export type Window = z.output<typeof window>
export type SubAccounts = z.output<typeof subAccounts>
export type Destinations = z.output<typeof destinations>
