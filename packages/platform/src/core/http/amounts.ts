import { JsonNumber, parseJson, stringifyJson } from '@custody/request-auth'
import { ApiError } from '../errors.ts'
import type { JsonSchema } from './openapi/components.ts'

/** Media type of a response whose decimals are JSON strings. */
export const TEXT_AMOUNTS = 'application/json; amounts=string'

/**
 * Returns whether the caller requests decimals as JSON strings, because its JSON parser would read
 * numbers as doubles: `Accept: application/json; amounts=string`.
 * @throws ApiError `INVALID_REQUEST`, field `accept`, if `amounts` has another value
 */
export function wantsTexts(accept: string | undefined): boolean {
  const values = (accept ?? '').split(',').flatMap((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    if (!['application/json', 'application/*', '*/*'].includes(type)) return []
    return parameters.flatMap((each) => {
      const [name = '', value = ''] = each.split('=').map((part) => part.trim())
      return name === 'amounts' ? [value.replaceAll('"', '')] : []
    })
  })
  const wrong = values.find((value) => value !== 'string' && value !== 'number')
  if (wrong !== undefined)
    throw new ApiError('INVALID_REQUEST', 'accept: amounts must be string or number', {
      field: 'accept',
    })
  return values.includes('string')
}

/** Positions of the decimals in a response. */
export interface Decimals {
  isDecimal: boolean
  fields: Map<string, Decimals>
  items: Decimals | null
  others: Decimals | null
}

const EMPTY = (): Decimals => ({ isDecimal: false, fields: new Map(), items: null, others: null })

function join(a: Decimals | null, b: Decimals | null): Decimals | null {
  if (a === null || b === null) return a ?? b
  const fields = new Map(a.fields)
  for (const [name, each] of b.fields)
    fields.set(name, join(fields.get(name) ?? null, each) as Decimals)
  return {
    isDecimal: a.isDecimal || b.isDecimal,
    fields,
    items: join(a.items, b.items),
    others: join(a.others, b.others),
  }
}

/**
 * Returns the positions of the decimals in a schema of the OpenAPI document: every number with the
 * format `decimal`.
 * @param resolve returns the schema that a reference points to
 */
export function decimalsOf(
  schema: JsonSchema,
  resolve: (schema: JsonSchema) => JsonSchema,
): Decimals {
  const {
    type,
    format,
    properties = {},
    items,
    additionalProperties: others,
    anyOf,
    oneOf,
    allOf,
  } = resolve(schema) as {
    type?: unknown
    format?: unknown
    properties?: Record<string, JsonSchema>
    items?: JsonSchema
    additionalProperties?: JsonSchema | boolean
    anyOf?: JsonSchema[]
    oneOf?: JsonSchema[]
    allOf?: JsonSchema[]
  }
  const of = (each: JsonSchema) => decimalsOf(each, resolve)
  const own: Decimals = {
    ...EMPTY(),
    isDecimal: [type].flat().includes('number') && format === 'decimal',
    fields: new Map(Object.entries(properties).map(([name, each]) => [name, of(each)])),
    items: items ? of(items) : null,
    others: typeof others === 'object' ? of(others) : null,
  }
  return [...(anyOf ?? []), ...(oneOf ?? []), ...(allOf ?? [])].reduce<Decimals>(
    (all, each) => join(all, of(each)) as Decimals,
    own,
  )
}

/** Returns the same JSON text with each decimal as a string of exactly the same digits. */
export function withTexts(json: string, decimals: Decimals): string {
  const changed = (value: unknown, at: Decimals | null): unknown => {
    if (at === null) return value
    if (value instanceof JsonNumber) return at.isDecimal ? value.text : value
    if (Array.isArray(value)) return value.map((each) => changed(each, at.items))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        name,
        changed(each, at.fields.get(name) ?? at.others),
      ]),
    )
  }
  return stringifyJson(changed(parseJson(json), decimals))
}
