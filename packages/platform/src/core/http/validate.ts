import { AuthError, JsonNumber, parseJson } from '@custody/request-auth'
import { inOurWords, parsedBy } from '@custody/request-auth/bodies'
import type { z } from 'zod'
import { ApiError } from '../errors.ts'
import { suggestName } from '../suggest-name.ts'
import { UNDECODABLE } from './query.ts'
import { isClearable } from './schemas.ts'

const NAME_SHOWN_MAX = 100
const BYTE_ORDER_MARK = '\uFEFF'

/**
 * Reads the fields of a JSON body. `null` for an optional field means absent, because clients in
 * typed languages send it; see `clearable` for the exceptions.
 * @param schema null: the request takes no fields
 * @throws ApiError 400 that names the field
 */
export function readBody<T>(schema: z.ZodType<T> | null, rawBody: string): T {
  const fields = schema ? namesOf(schema) : []
  const input = parseObject(rawBody, fields.length === 0 ? '{}' : 'a JSON object')
  const unknown = Object.keys(input).find((name) => !fields.includes(name))
  if (unknown !== undefined)
    throw unknownName(unknown, 'field', fields, 'which must be an empty object')
  const shape = schema ? shapeOf(schema) : {}
  const present = Object.fromEntries(
    Object.entries(input).filter(([name, value]) => value !== null || isClearable(shape[name])),
  )
  return schema ? parse(schema, present, 'body') : (undefined as T)
}

/**
 * Reads the parameters of a query string, as `parseQuery` returns them. An empty parameter is
 * rejected, because as a filter it would match nothing.
 * @param schema null: the request takes no parameters
 * @param mayBeEmpty names of parameters that may have no value
 * @throws ApiError 400 that names the parameter
 */
export function readQuery<T>(
  schema: z.ZodType<T> | null,
  input: Record<string, unknown>,
  mayBeEmpty: readonly string[] = [],
): T {
  const names = schema ? namesOf(schema) : []
  for (const [name, value] of Object.entries(input)) {
    if (!names.includes(name)) throw unknownName(name, 'parameter', names, 'which must be empty')
    if (Array.isArray(value))
      throw new ApiError('INVALID_REQUEST', `${name}: appears twice; send it once`, {
        field: name,
      })
    if (value === UNDECODABLE) {
      throw new ApiError(
        'INVALID_REQUEST',
        `${name}: is not percent-encoded UTF-8: encode % as %25, and other characters as their UTF-8 bytes`,
        { field: name },
      )
    }
  }
  const query = schema ? parse(schema, input, 'query') : (undefined as T)
  const empty = Object.keys(input).find((name) => input[name] === '' && !mayBeEmpty.includes(name))
  if (empty !== undefined) {
    throw new ApiError('INVALID_REQUEST', `${empty}: must not be empty; omit it for no filter`, {
      field: empty,
    })
  }
  return query
}

/**
 * Reads the parameters of a path.
 * @throws ApiError 400 that names the part of the path
 */
export function readParams<T>(schema: z.ZodType<T>, input: unknown): T {
  return parse(schema, input, 'path')
}

/** Returns the unvalidated fields of a JSON body; null if it is not a JSON object. */
export function fieldsOf(rawBody: string): Record<string, unknown> | null {
  try {
    return parseObject(rawBody)
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** @param wanted what to send, for the message about a missing body */
function parseObject(rawBody: string, wanted = 'a JSON object'): Record<string, unknown> {
  const invalid = (message: string) =>
    new ApiError('INVALID_JSON', `body: ${message}`, { field: 'body' })
  if (rawBody.trim() === '')
    throw invalid(`is missing; send ${wanted} with Content-Type: application/json`)
  if (rawBody.startsWith(BYTE_ORDER_MARK))
    throw invalid('begins with a byte order mark, which is not allowed in JSON')
  let value: unknown
  try {
    value = parseJson(rawBody)
  } catch (error) {
    if (error instanceof AuthError) throw invalid(error.message)
    throw error
  }
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    value instanceof JsonNumber
  )
    throw invalid('must be a JSON object')
  return value as Record<string, unknown>
}

/** Returns the names of a schema's fields. Every schema of a body or query is an object schema. */
const shapeOf = (schema: z.ZodType) =>
  (schema as unknown as { shape: Record<string, z.ZodType | undefined> }).shape

const namesOf = (schema: z.ZodType): string[] => Object.keys(shapeOf(schema))

/**
 * Returns the first unknown field. It is reported before missing fields, because a misspelt field
 * usually is the missing one.
 */
function unknownName(
  name: string,
  what: 'field' | 'parameter',
  existing: readonly string[],
  none: string,
): ApiError {
  const shown = name.slice(0, NAME_SHOWN_MAX)
  const likely = suggestName(name, existing)
  const hint =
    existing.length === 0
      ? ` of this request, ${none}`
      : likely === null
        ? ` of this request; known are ${existing.join(', ')}`
        : `; did you mean ${likely}?`
  return new ApiError('UNKNOWN_FIELD', `${shown}: is not a known ${what}${hint}`, { field: shown })
}

function parse<T>(schema: z.ZodType<T>, value: unknown, part: string): T {
  const result = parsedBy(schema, value, { error: inOurWords })
  if (result === null)
    throw new ApiError('INVALID_REQUEST', `${part}: has the wrong type`, { field: part })
  if (result.success) {
    assertStorable(value, [], part)
    return result.data
  }
  const [issue] = result.error.issues
  const field = issue && issue.path.length > 0 ? issue.path.map(String).join('.') : part
  // For a missing field, the schema's own message, such as "must be EXTERNAL", would be less
  // helpful.
  const isAbsent =
    issue?.path.length === 1 && !Object.hasOwn(value as object, issue.path[0] as PropertyKey)
  throw new ApiError(
    'INVALID_REQUEST',
    `${field}: ${isAbsent ? 'is required' : (issue?.message ?? 'is not valid')}`,
    { field },
  )
}

/**
 * Returns whether PostgreSQL stores a string unchanged: it must not contain NUL or an unpaired
 * surrogate.
 */
const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/**
 * Checks that the database could store all parts of the path.
 * @throws ApiError `NOT_FOUND` if it could not
 */
export function assertStorablePath(params: Record<string, string>): void {
  if (!Object.values(params).every(isStorable))
    throw new ApiError('NOT_FOUND', 'no such path: a part of it contains the character NUL')
}

/**
 * Checks that every string of a request can be stored, whatever its schema allows.
 * @throws ApiError 400 that names the field
 */
function assertStorable(value: unknown, path: readonly string[], part: string): void {
  if (typeof value === 'string') {
    if (isStorable(value)) return
    const field = path.length > 0 ? path.join('.') : part
    throw new ApiError(
      'INVALID_REQUEST',
      `${field}: must not contain the character NUL or half of a surrogate pair`,
      { field },
    )
  }
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return
  for (const [name, each] of Object.entries(value)) {
    if (!isStorable(name)) assertStorable(name, path, part)
    assertStorable(each, [...path, name], part)
  }
}
