import { decimalsOf, TEXT_AMOUNTS, withTexts } from '../amounts.ts'
import type { JsonSchema } from './components.ts'

const TEXT = { pattern: '^-?\\d+(\\.\\d+)?$', maxLength: 100 }
const NOTE =
  '**Amounts** are strings of digits: responses contain them if the header `accept` is `application/json; ' +
  'amounts=string`, and requests accept them. Webhook events always contain numbers and are not described here.'

interface Media {
  schema: JsonSchema
  example?: unknown
}

/** Follows the references of a schema to the schema itself. */
function resolveIn(schemas: Readonly<Record<string, JsonSchema>>, schema: JsonSchema): JsonSchema {
  const { $ref } = schema
  return typeof $ref === 'string'
    ? resolveIn(schemas, schemas[$ref.split('/').at(-1) ?? ''] ?? {})
    : schema
}

/**
 * Returns the document for generated clients that read numbers as doubles: every decimal is a
 * string, in requests and in responses, and responses use the media type that requests this.
 */
export function withTextAmounts(document: JsonSchema): JsonSchema {
  const {
    components,
    paths,
    webhooks: _sent,
    info,
    ...rest
  } = document as {
    components: { schemas: Record<string, JsonSchema> }
    paths: JsonSchema
    webhooks: unknown
    info: { description: string }
  }
  const resolve = (schema: JsonSchema) => resolveIn(components.schemas, schema)
  const changed = (value: unknown, isAnswer = false): unknown => {
    if (Array.isArray(value)) return value.map((each) => changed(each, isAnswer))
    if (typeof value !== 'object' || value === null) return value
    const {
      format,
      type,
      minimum: _least,
      exclusiveMinimum: _above,
      maximum: _most,
      multipleOf: _step,
      ...own
    } = value as JsonSchema
    if (format === 'decimal' && [type].flat().includes('number')) {
      return {
        ...own,
        type: [type].flat().includes('null') ? ['string', 'null'] : 'string',
        ...TEXT,
      }
    }
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        if (key === 'content') return [key, contentOf(inner as Record<string, Media>, isAnswer)]
        return [
          key,
          key === 'example' || key === 'examples'
            ? inner
            : changed(inner, isAnswer || key === 'responses'),
        ]
      }),
    )
  }
  const contentOf = (content: Record<string, Media>, isAnswer: boolean) =>
    Object.fromEntries(
      Object.entries(content).map(([type, { schema, example, ...media }]) => {
        const shown =
          example === undefined || !type.endsWith('json')
            ? example
            : (JSON.parse(
                withTexts(JSON.stringify(example), decimalsOf(schema, resolve)),
              ) as unknown)
        const name = isAnswer && type === 'application/json' ? TEXT_AMOUNTS : type
        return [
          name,
          { ...media, schema: changed(schema), ...(shown === undefined ? {} : { example: shown }) },
        ]
      }),
    )
  return {
    ...rest,
    info: { ...info, description: info.description.replace(/\*\*Amounts\*\*[^]*?(?=\n\n)/, NOTE) },
    paths: changed(paths),
    components: changed(components),
  } as unknown as JsonSchema
}
