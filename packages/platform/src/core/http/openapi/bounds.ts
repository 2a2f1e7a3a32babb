import { TIME_MAX } from '../../bounds.ts'
import type { JsonSchema } from './components.ts'

/**
 * Largest amount. Amounts are stored as `numeric(78)` of the smallest unit, so no amount has more
 * digits before its decimal point.
 */
const AMOUNT_MAX = 1e78

const SAFE = Number.MAX_SAFE_INTEGER

/** Bounds of strings whose format determines their length. */
const FORMATS: Readonly<Record<string, JsonSchema>> = {
  'date-time': { maxLength: TIME_MAX },
  uuid: { maxLength: 36 },
}

/**
 * Returns the bounds that follow from a value's type.
 * @throws Error if the schema must state its own
 */
function boundsOf(
  { type, format, enum: words, const: only, minimum, maximum, maxLength }: JsonSchema,
  path: string,
): JsonSchema {
  if (words !== undefined || only !== undefined) return {}
  const types = [type].flat()
  if (types.includes('string') && maxLength === undefined) {
    const bounds = FORMATS[String(format)]
    if (bounds) return bounds
    throw new Error(
      `${path}: has no bounds in the OpenAPI document; add .max(…) to its schema, with a constant of core/bounds.ts`,
    )
  }
  if (types.includes('integer')) {
    if (minimum !== undefined) return maximum === undefined ? { maximum: SAFE } : {}
    throw new Error(
      `${path}: has no bounds in the OpenAPI document; add .min(…) to its schema, and .max(…) if it has an upper bound`,
    )
  }
  if (!types.includes('number')) return {}
  // Decimals whose schema does not state a minimum may be negative.
  return { minimum: minimum ?? -AMOUNT_MAX, maximum: maximum ?? AMOUNT_MAX }
}

/**
 * Returns the schema of a response or event with bounds for each string and number: those that the
 * schema states, or those of its type. Arrays and maps must state their own.
 * @param path where the schema is, for error messages
 */
export function withBounds(schema: JsonSchema, path: string): JsonSchema {
  const inner = (value: unknown, name?: string) =>
    withBounds(value as JsonSchema, name === undefined ? path : `${path}.${name}`)
  const within = Object.fromEntries(
    Object.entries(schema).map(([key, value]): [string, unknown] => {
      if (key === 'properties') {
        const fields = Object.entries(value as JsonSchema)
        return [key, Object.fromEntries(fields.map(([name, each]) => [name, inner(each, name)]))]
      }
      if (key === 'items' || key === 'propertyNames') return [key, inner(value)]
      if (key === 'additionalProperties' && typeof value === 'object') return [key, inner(value)]
      if (key === 'anyOf' || key === 'oneOf' || key === 'allOf')
        return [key, (value as JsonSchema[]).map((each) => inner(each))]
      return [key, value]
    }),
  )
  return { ...within, ...boundsOf(schema, path) }
}
