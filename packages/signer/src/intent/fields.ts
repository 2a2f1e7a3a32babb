import { AuthError, JsonNumber, parseJson } from '@custody/request-auth'
import { Refusal } from '../errors.ts'
import type { Proven } from './request.ts'

const TEXT_LENGTH_MAX = 256

/** A field of the caller's body that is not what it must be. */
export const badField = (field: string, message: string): Refusal => new Refusal('BAD_REQUEST_FIELD', `${field}: ${message}`, { field })

/** The caller's body, read strictly: duplicate and unknown fields are refused (rule 2). */
export interface Fields {
  raw: Readonly<Record<string, unknown>>
  /** @throws Refusal where it is missing and not optional, or no text of 1 to 256 characters */
  text(name: string, optional?: boolean): string | null
  /** Digits of a number or a text; the caller parses them. */
  decimal(name: string): string
  /** Refuses any other value than this one. */
  one(name: string, value: string, optional?: boolean): void
}

export function fieldsOf(proven: Proven, known: ReadonlySet<string>): Fields {
  let body: unknown
  try {
    body = parseJson(proven.request.body)
  } catch (error) {
    if (error instanceof AuthError) throw badField('body', error.message)
    throw error
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body) || body instanceof JsonNumber) throw badField('body', 'must be a JSON object')
  const raw = body as Record<string, unknown>
  for (const name of Object.keys(raw)) if (!known.has(name)) throw badField(name.slice(0, 64), 'unknown field')
  const text = (name: string, optional = false): string | null => {
    const value = raw[name]
    if (value === undefined || (optional && value === null)) {
      if (optional) return null
      throw badField(name, 'is required')
    }
    if (typeof value !== 'string' || value === '' || value.length > TEXT_LENGTH_MAX) throw badField(name, `must be a text of 1 to ${TEXT_LENGTH_MAX} characters`)
    return value
  }
  const decimal = (name: string): string => {
    const value = raw[name]
    const digits = value instanceof JsonNumber ? value.text : value
    if (typeof digits !== 'string' || digits.length > 100) throw badField(name, 'must be a decimal number')
    return digits
  }
  const one = (name: string, value: string, optional = false): void => {
    const given = text(name, optional)
    if (given !== null && given !== value) throw badField(name, `must be ${value}`)
  }
  return { raw, text, decimal, one }
}
