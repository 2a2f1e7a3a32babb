import { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'
import { mustBeOneOf } from './validate.ts'

import { text } from '@custody/request-auth/bodies'

export { assetName, decimal, decimalSchema, text } from '@custody/request-auth/bodies'

/** Whether a text can be sent in a header as it is: what a provider issues as a key is such a text. */
export const isPrintable = (value: string): boolean => /^[\x20-\x7e]*$/.test(value)
export const PRINTABLE = 'must consist of printable ASCII characters, as the provider shows it'

/** A key or token that another service has issued, without the spaces around it. */
export const credential = (max: number) => text(max)
  .refine((value) => isPrintable(value.trim()), PRINTABLE).transform((value) => value.trim())

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
    .meta({ type: 'string', enum: [...values], ...(description === undefined ? {} : { description }) })

/** An integer in a query string. */
export const integer = (min: number, max: number, description: string) =>
  z
    .string()
    .transform((value, context): number => {
      if (/^\d{1,10}$/.test(value) && Number(value) >= min && Number(value) <= max) return Number(value)
      context.addIssue({ code: 'custom', message: `must be an integer from ${min} to ${max}` })
      return z.NEVER
    })
    .meta({ type: 'integer', minimum: min, maximum: max, description })

/** An integer in a body. */
export const wholeNumber = (min: number, max: number, description: string) =>
  z
    .unknown()
    .transform((value, context): number => {
      const text = value instanceof JsonNumber ? value.text : ''
      if (/^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text)
      context.addIssue({ code: 'custom', message: `must be an integer from ${min} to ${max}` })
      return z.NEVER
    })
    .meta({ type: 'integer', minimum: min, maximum: max, description })

/** Query of a paged list. */
export const pageQuery = {
  page: integer(1, 1_000_000_000, 'Page number; 1 where it is absent').default(1),
  limit: integer(1, 500, 'Records on a page; 50 where it is absent').default(50),
}
