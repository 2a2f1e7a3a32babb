import { AuthError, JsonNumber, parseJson } from '@custody/request-auth'
import { parsedBy } from '@custody/request-auth/bodies'
import type { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { Proven } from './request.ts'

/** Returns the error for an invalid field of the caller's body. */
export const badField = (field: string, message: string): Refusal =>
  new Refusal('BAD_REQUEST_FIELD', `${field}: ${message}`, { field })

/**
 * Parses the caller's body strictly, with the same schema as the API (rule 2).
 * @throws Refusal `BAD_REQUEST_FIELD` for duplicate and unknown fields, and for values that do not
 *   match the schema
 */
export function bodyOf<T>(proven: Proven, schema: z.ZodType<T>): T {
  let body: unknown
  try {
    body = parseJson(proven.request.body)
  } catch (error) {
    if (error instanceof AuthError) throw badField('body', error.message)
    throw error
  }
  if (
    typeof body !== 'object' ||
    body === null ||
    Array.isArray(body) ||
    body instanceof JsonNumber
  ) {
    throw badField('body', 'must be a JSON object')
  }
  const result = parsedBy(schema, body)
  if (result?.success) return result.data
  const issue = result?.error.issues[0]
  if (issue?.code === 'unrecognized_keys')
    throw badField((issue.keys[0] as string).slice(0, 64), 'unknown field')
  const field = issue?.path[0] === undefined ? 'body' : String(issue.path[0])
  throw badField(
    field,
    Object.hasOwn(body, field) || field === 'body'
      ? (issue?.message ?? 'is not valid')
      : 'is required',
  )
}
