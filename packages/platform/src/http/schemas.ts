import { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'

export { assetName, decimal, optional, text } from '@custody/request-auth/bodies'

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
