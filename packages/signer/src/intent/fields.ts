import { AuthError, JsonNumber, parseJson } from '@custody/request-auth'
import { parsedBy } from '@custody/request-auth/bodies'
import type { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { Proven } from './request.ts'

/** A field of the caller's body that is not what it must be. */
export const badField = (field: string, message: string): Refusal =>
  new Refusal('BAD_REQUEST_FIELD', `${field}: ${message}`, { field })

/**
 * The caller's body, read strictly and by the schema that the API reads it by (rule 2).
 * @throws Refusal `BAD_REQUEST_FIELD` for doubled and unknown fields, and what is not as the
 *   schema says
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
