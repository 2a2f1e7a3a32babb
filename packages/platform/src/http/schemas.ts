import { parseAmount } from '@custody/chains/basics'
import { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'
import { EXAMPLE_ID } from './openapi/examples.ts'
import { mustBeOneOf } from './validate.ts'

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
 * The id of something in a path. In another form it is nothing's, and the answer is 404: whoever
 * looks it up sees to that.
 */
export const pathId = z.string().meta({
  minLength: 36,
  maxLength: 36,
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
  examples: [EXAMPLE_ID],
})

/**
 * Whether a text can be sent in a header as it is: what a provider issues as a key is such a text.
 */
export const isPrintable = (value: string): boolean => /^[\x20-\x7e]*$/.test(value)
/** Spaces of another kind are allowed around it, which the document does not say. */
const PRINTABLE_TEXT = String.raw`^[\x20-\x7e]*$`
export const PRINTABLE = 'must consist of printable ASCII characters, as the provider displays it'

/** A key or token that another service has issued, without the spaces around it. */
export const credential = (max: number) =>
  text(max)
    .refine((value) => isPrintable(value.trim()), PRINTABLE)
    .transform((value) => value.trim())
    .meta({ ...textSchema(max), pattern: PRINTABLE_TEXT })

/** One of a few words in any case; what is read is the word as it stands in the list. */
export const oneOf = <T extends string>(values: readonly T[], description?: string) =>
  z
    .string()
    .transform((value, context): T => {
      const known = values.find((each) => each.toLowerCase() === value.toLowerCase())
      if (known !== undefined) return known
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
 * Value of an integer in a JSON text, judged by its digits: a double would round
 * 1.00000000000000000001 to 1. `900.0`, `9e2` and `-0` are integers too, by JSON Schema.
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

/** The last page that can be asked for, and the most records on one. */
const PAGE_MAX = 1_000_000_000
export const LIMIT_MAX = 500

/** Query of a paged list. */
export const pageQuery = {
  page: integer(1, PAGE_MAX, 'Page number; by default 1').default(1),
  limit: integer(1, LIMIT_MAX, 'Records per page; by default 50').default(50),
}

/** A page of a list, as it is answered. */
export const pageOf = <T extends z.ZodType>(shape: T, limitMax = LIMIT_MAX) =>
  z.object({
    data: z.array(shape).max(limitMax),
    page: z.int().min(1).max(PAGE_MAX),
    limit: z.int().min(1).max(limitMax),
    total: z.int().min(0),
  })
