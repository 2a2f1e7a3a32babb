import { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'

/** A decimal read from the raw JSON text (a double cannot hold 18 decimals); a decimal string is accepted too. */
export const decimal = z
  .custom<JsonNumber | string>((value) => value instanceof JsonNumber || typeof value === 'string', 'must be a decimal number')
  .transform((value, context): string => {
    const text = value instanceof JsonNumber ? value.text : value
    if (/^\d+(\.\d+)?([eE][+-]?\d{1,3})?$/.test(text) && text.length <= 100) return text
    context.addIssue({ code: 'custom', message: text.startsWith('-') ? 'must not be negative' : 'must be a decimal number' })
    return z.NEVER
  })
  .meta({ type: 'number', description: 'Decimal in the asset’s native unit, exact' })

/** Text without control characters. */
export const text = (max: number) => z.string().min(1, 'must not be empty').max(max, `must have at most ${max} characters`)
  // oxlint-disable-next-line no-control-regex
  .refine((value) => !/[\u0000-\u001f\u007f]/.test(value), 'must not contain control characters')
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')

export const assetName = text(64).meta({ description: 'An `asset_name` of the assets list; case-sensitive', examples: ['BTC', 'USDT_ETH'] })

const paging = (max: number, fallback: number) => z.string().regex(/^\d{1,10}$/, `must be an integer from 1 to ${max}`)
  .transform(Number).refine((value) => value >= 1 && value <= max, `must be an integer from 1 to ${max}`).default(fallback)

/** Query of a paged list. */
export const pageQuery = { page: paging(1_000_000_000, 1), limit: paging(500, 50) }

/** JSON Schema of a zod schema for the OpenAPI document. */
export function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', target: 'draft-2020-12' }) as Record<string, unknown>
  return rest
}

/** Exact decimal as a JSON number for a response. */
export function exact(decimalText: string): JsonNumber {
  return new JsonNumber(decimalText)
}
