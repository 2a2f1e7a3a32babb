import { z } from 'zod'
import { address, assetName, decimal, decimalSchema, optional, tag, text } from './fields.ts'

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/

/** An ISO 8601 time in UTC on a valid calendar day, rounded down to whole seconds. */
const instant = text(40)
  .transform((value, context): Date => {
    const at = INSTANT.test(value) ? Date.parse(value) : Number.NaN
    if (!Number.isNaN(at) && new Date(at).toISOString().slice(0, 19) === value.slice(0, 19))
      return new Date(Math.floor(at / 1000) * 1000)
    context.addIssue({
      code: 'custom',
      message: 'must be a time in UTC such as 2030-01-31T12:00:00Z',
    })
    return z.NEVER
  })
  .meta({
    type: 'string',
    format: 'date-time',
    maxLength: 40,
    pattern: INSTANT.source,
    description: 'Expiry time, ISO 8601 in UTC',
  })

/** Body of POST /dac/v1/auto-forwarding. */
export const ruleBody = z.strictObject({
  asset: assetName,
  min_amount: decimal.meta(
    decimalSchema('Incoming funds are forwarded when their total reaches this amount'),
  ),
  destination_address: address,
  address_tag: optional(tag),
  daily_cap: decimal.meta(decimalSchema('Maximum total of all forwards in any 24 hours')),
  expires_at: instant,
})

/** Parsed form of {@link ruleBody}. */
export type RuleBody = z.output<typeof ruleBody>
