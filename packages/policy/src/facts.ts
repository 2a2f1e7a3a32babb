import { API_ROLES } from '@custody/request-auth/roles'
import { text } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { assetOf, type Act } from './act.ts'
import {
  addressText,
  apiKey,
  assetName,
  name,
  networkCode,
  seconds,
  sha256Hex,
  subAccountName,
} from './document/fields.ts'
import type { PolicyRegistry } from './registry.ts'

/** Amount in the smallest unit. It has one spelling, so all parties build the same bytes. */
const digits = z
  .string()
  .max(78)
  .regex(/^(?:0|[1-9]\d{0,77})$/, 'must be digits without leading zeros')
  .meta({ examples: ['600000000000000000'] })
const decimals = z.int().min(0).max(30)

/**
 * What people approve of an act, with every field that has a meaning. Amounts are in the smallest
 * unit, together with the decimals, so that a page can compare them with its own registry.
 */
export const actFacts = z.strictObject({
  sub_account: subAccountName,
  asset: assetName,
  network: networkCode,
  /** Null for a native coin. */
  contract: addressText.nullable(),
  decimals,
  /** Null for a forward, whose amounts are in `standing`. */
  amount: digits.nullable(),
  to: addressText,
  tag: text(200).nullable(),
  fee_asset: assetName,
  fee_decimals: decimals,
  /** Largest fee of any transaction of the act. Null for a forward: each has a fee of its own. */
  fee_max: digits.nullable(),
  standing: z.strictObject({ min_amount: digits, daily_cap: digits, ends_at: seconds }).nullable(),
  resource: z.enum(['ENERGY', 'BANDWIDTH']).nullable(),
})
export type ActFacts = z.output<typeof actFacts>

/** What people approve of an API key that an operator enrols. */
export const enrolmentFacts = z.strictObject({
  api_key: apiKey,
  /** SHA-256 of the key's SubjectPublicKeyInfo. */
  fingerprint: sha256Hex,
  role: z.enum(API_ROLES),
  sub_account: subAccountName,
  /** Person who owns the key; absent: the enrolment names none. */
  person: name.optional(),
})
export type EnrolmentFacts = z.output<typeof enrolmentFacts>

/** What people approve of an operator's order about a gas tank: a drain of its balance, or a stake. */
export const orderFacts = z.strictObject({
  network: networkCode,
  asset: assetName,
  decimals,
  /** Null for a drain, which moves the whole balance. */
  amount: digits.nullable(),
  /** Null for a stake, which the tank keeps. */
  to: addressText.nullable(),
  tag: text(200).nullable(),
  resource: z.enum(['ENERGY', 'BANDWIDTH']).nullable(),
})
export type OrderFacts = z.output<typeof orderFacts>

/** Returns what people approve of an act. It does not change with the transactions of the act. */
export function factsOf(act: Act, registry: PolicyRegistry): ActFacts {
  const asset = assetOf(registry, act.asset, 'asset')
  const { standing } = act
  return {
    sub_account: act.sub_account,
    asset: act.asset,
    network: act.network,
    contract: asset.contract,
    decimals: asset.decimals,
    amount: standing === null ? act.amount.toString() : null,
    to: act.to.address,
    tag: act.to.tag,
    fee_asset: asset.fee_asset,
    fee_decimals: assetOf(registry, asset.fee_asset, 'asset').decimals,
    fee_max: standing === null ? act.fee.limit.toString() : null,
    standing: standing && {
      min_amount: standing.min_amount.toString(),
      daily_cap: standing.daily_cap.toString(),
      ends_at: standing.ends_at,
    },
    resource: act.resource,
  }
}
