import { z } from 'zod'

export type JsonSchema = { [key: string]: unknown }

const SAFE = Number.MAX_SAFE_INTEGER
const REF = '#/components/schemas/'

/**
 * JSON Schemas generated from zod schemas. A schema with an `id` is written once, under
 * `components.schemas`.
 */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {}

  /** Returns the JSON Schema of a response or event. */
  shown(schema: z.ZodType): JsonSchema {
    return this.#hoisted(schema)
  }

  /**
   * Returns the JSON Schema of a request body. Its optional fields may be null, which means absent.
   */
  taken(schema: z.ZodType): JsonSchema {
    const {
      properties = {},
      required = [],
      ...rest
    } = this.#hoisted(schema) as {
      properties?: Record<string, JsonSchema>
      required?: string[]
    }
    const wrapped = ({ description, default: preset, ...plain }: JsonSchema): JsonSchema => ({
      ...(description === undefined ? {} : { description }),
      ...(preset === undefined ? {} : { default: preset }),
      ...(Object.keys(plain).length === 0 ? {} : { anyOf: [plain, { type: 'null' }] }),
    })
    const nullable = (property: JsonSchema) =>
      /"type":(?:"null"|\[[^\]]*"null"\])/.test(JSON.stringify(property))
        ? property
        : wrapped(property)
    const fields = Object.entries(properties).map(([name, property]) => [
      name,
      required.includes(name) ? property : nullable(property),
    ])
    return { ...rest, properties: Object.fromEntries(fields), required }
  }

  /**
   * Adds a named schema that was not generated from a zod schema.
   * @throws Error if a different schema has this name
   */
  named(id: string, schema: JsonSchema): JsonSchema {
    const existing = this.schemas[id]
    if (existing !== undefined && JSON.stringify(existing) !== JSON.stringify(schema))
      throw new Error(`two schemas have the name ${id}`)
    this.schemas[id] = schema
    return { $ref: `${REF}${id}` }
  }

  /** Returns the schema that a reference points to. */
  resolve(schema: JsonSchema): JsonSchema {
    const { $ref } = schema
    return typeof $ref === 'string'
      ? this.resolve(this.schemas[$ref.slice(REF.length)] as JsonSchema)
      : schema
  }

  #hoisted(schema: z.ZodType): JsonSchema {
    const {
      $schema: _,
      $defs = {},
      ...root
    } = z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
      target: 'draft-2020-12',
    }) as JsonSchema & { $defs?: Record<string, JsonSchema> }
    for (const [id, each] of Object.entries($defs)) this.named(id, tidy(each) as JsonSchema)
    return tidy(root) as JsonSchema
  }
}

const isNumber = (type: unknown): boolean =>
  type === 'number' || (Array.isArray(type) && type.includes('number') && !type.includes('string'))

/**
 * Normalizes a generated JSON Schema: references, bounds that only describe doubles, decimals and
 * times.
 */
function tidy(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => tidy(each, name))
  if (typeof value !== 'object' || value === null) return value
  const match: JsonSchema = {}
  for (const [key, inner] of Object.entries(value as JsonSchema)) {
    if (key === 'id' && typeof inner === 'string' && 'type' in value) continue
    if ((key === 'minimum' && inner === -SAFE) || (key === 'maximum' && inner === SAFE)) continue
    if (key === '$ref') match[key] = String(inner).replace('#/$defs/', REF)
    else if (key === 'properties') {
      match[key] = Object.fromEntries(
        Object.entries(inner as JsonSchema).map(([field, each]) => [field, tidy(each, field)]),
      )
    } else
      match[key] =
        key === 'examples' || key === 'default' || key === 'enum' ? inner : tidy(inner, name)
  }
  return withFormat(withNull(match), name)
}

/** Writes a text or number that may be null as one schema with two types, as zod does without bounds. */
function withNull(schema: JsonSchema): JsonSchema {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema
  const [value, none] = anyOf as [JsonSchema, JsonSchema]
  const isScalar = ['string', 'number', 'integer'].includes(String(value['type']))
  if (none['type'] !== 'null' || !isScalar || value['enum'] || value['const']) return schema
  return { ...value, ...rest, type: [value['type'], 'null'] }
}

/** Adds the format of decimals and times to a schema. */
function withFormat(schema: JsonSchema, name: string): JsonSchema {
  // Every number that is not a count is a decimal with exactly the digits shown.
  const isFixed = schema['const'] !== undefined || schema['enum'] !== undefined
  if (isNumber(schema['type']) && !isFixed && schema['format'] === undefined)
    schema['format'] = 'decimal'
  const isText =
    schema['type'] === 'string' ||
    (Array.isArray(schema['type']) && schema['type'].includes('string'))
  if (isText && name.endsWith('_at') && schema['format'] === undefined)
    schema['format'] = 'date-time'
  return schema
}
