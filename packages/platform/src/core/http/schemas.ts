import { parseAmount } from '@custody/chains/basics'
import { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'
import { EXAMPLE_ID } from './openapi/examples.ts'
import { mustBeOneOf } from '@custody/request-auth/bodies'

import { text, textSchema } from '@custody/request-auth/bodies'

export {
  assetName,
  decimal,
  positive,
  positiveSchema,
  text,
  textSchema,
} from '@custody/request-auth/bodies'

/**
 * An ID in a path. An ID in another format does not exist, so the response is 404; the lookup must
 * handle it.
 */
export const pathId = z.string().meta({
  minLength: 36,
  maxLength: 36,
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
  examples: [EXAMPLE_ID],
})

/**
 * Returns whether a string can be sent in a header unchanged. Providers issue such strings as keys.
 */
export const isPrintable = (value: string): boolean => /^[\x20-\x7e]*$/.test(value)
/**
 * Pattern of a printable string in the OpenAPI document. White space around the string is accepted
 * too, but not documented.
 */
const PRINTABLE_TEXT = String.raw`^[\x20-\x7e]*$`
export const PRINTABLE = 'must consist of printable ASCII characters, as the provider displays it'

/** A key or token that another service issued; surrounding white space is removed. */
export const credential = (max: number) =>
  text(max)
    .refine((value) => isPrintable(value.trim()), PRINTABLE)
    .transform((value) => value.trim())
    .meta({ ...textSchema(max), pattern: PRINTABLE_TEXT })

/**
 * Returns whether the body of a change names a field. An empty body is refused, because `{}` is what
 * a deletion of the same path signs.
 */
export const changesSomething = (body: object): boolean => Object.keys(body).length > 0
export const CHANGES_NOTHING = 'must contain at least one field, because {} changes nothing'

const CLEARABLE = new WeakSet<z.ZodType>()

/**
 * Returns the optional schema of a body's field that `null` removes. In every other field, `null` means
 * absent.
 */
export function clearable<T extends z.ZodType>(schema: T): z.ZodOptional<z.ZodNullable<T>> {
  const made = schema.nullable().optional()
  CLEARABLE.add(made)
  return made
}

/** Whether `null` removes the field of a schema that {@link clearable} returned. */
export const isClearable = (schema: z.ZodType | undefined): boolean =>
  schema !== undefined && CLEARABLE.has(schema)

/** One of several words in upper or lower case; parsed to the spelling in the list. */
export const oneOf = <T extends string>(values: readonly T[], description?: string) =>
  z
    .string()
    .transform((value, context): T => {
      const existing = values.find((each) => each.toLowerCase() === value.toLowerCase())
      if (existing !== undefined) return existing
      context.addIssue({ code: 'custom', message: mustBeOneOf(values) })
      return z.NEVER
    })
    .meta({
      type: 'string',
      enum: [...values],
      ...(description === undefined ? {} : { description }),
    })

/** An integer in a query string. */
export const integer = (min: number, max: number, description: string) =>
  z
    .string()
    .transform((value, context): number => {
      if (/^\d{1,10}$/.test(value) && Number(value) >= min && Number(value) <= max)
        return Number(value)
      context.addIssue({ code: 'custom', message: `must be an integer from ${min} to ${max}` })
      return z.NEVER
    })
    .meta({ type: 'integer', minimum: min, maximum: max, description })

/**
 * Returns the value of an integer in a JSON text. It is checked by its digits, because a double
 * would round 1.00000000000000000001 to 1. `900.0`, `9e2` and `-0` are integers too, according to
 * JSON Schema.
 *
 * @returns NaN for everything that is not a non-negative integer
 */
function integerOf(text: string): number {
  try {
    const value = parseAmount(text.replace(/^-/, ''), 0)
    return text.startsWith('-') && value > 0n ? NaN : Number(value)
  } catch {
    return NaN
  }
}

/** A non-negative integer in a body. */
export const wholeNumber = (min: number, max: number, description: string) =>
  z
    .unknown()
    .transform((value, context): number => {
      const number = value instanceof JsonNumber ? integerOf(value.text) : NaN
      if (number >= min && number <= max) return number
      context.addIssue({ code: 'custom', message: `must be an integer from ${min} to ${max}` })
      return z.NEVER
    })
    .meta({ type: 'integer', minimum: min, maximum: max, description })

/** Highest page number, and the maximum number of records per page. */
const PAGE_MAX = 1_000_000_000
export const LIMIT_MAX = 500

/** Query parameters of a paged list. */
export const pageQuery = {
  page: integer(1, PAGE_MAX, 'Page number; by default 1').default(1),
  limit: integer(1, LIMIT_MAX, 'Records per page; by default 50').default(50),
}

/** Schema of the response of a paged list. */
export const pageOf = <T extends z.ZodType>(shape: T, limitMax = LIMIT_MAX) =>
  z.object({
    data: z.array(shape).max(limitMax),
    page: z.int().min(1).max(PAGE_MAX),
    limit: z.int().min(1).max(limitMax),
    total: z.int().min(0),
  })
