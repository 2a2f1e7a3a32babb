import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { TEXT_AMOUNTS } from '../src/core/http/amounts.ts'
import { withTextAmounts } from '../src/core/http/openapi/text-amounts.ts'

type Schema = { [key: string]: unknown }
interface Operation {
  operationId: string
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { $ref?: string; headers?: object; content?: Record<string, Media> }>
}
interface Media {
  schema: Schema
  example?: unknown
}

/** The committed document, which `openapi.test.ts` compares with the endpoints. */
export const document = JSON.parse(
  readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'),
) as {
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, { 'x-codes': string[]; content: Record<string, Media> }>
  }
}

/** Headers that every response has. */
const HEADERS = [
  'x-request-id',
  'x-rate-limit-remaining',
  'x-rate-limit-limit',
  'x-rate-limit-reset',
]

/**
 * Disallows fields that the document does not list. Callers must ignore such fields, but here they
 * are an error.
 */
function closed(value: unknown, isPart = false): unknown {
  if (Array.isArray(value)) return value.map((each) => closed(each, isPart))
  if (typeof value !== 'object' || value === null) return value
  const closedProperties = Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, closed(inner, key === 'allOf')]),
  ) as Schema
  const isOpen =
    closedProperties['type'] === 'object' &&
    'properties' in closedProperties &&
    closedProperties['additionalProperties'] === undefined
  return isOpen && !isPart ? { ...closedProperties, additionalProperties: false } : closedProperties
}

let ajv: Ajv2020 | undefined
const compiled = new Map<string, ValidateFunction>()

/**
 * Returns the validator of a schema of the document, which is compiled at its first use.
 * @param pointer JSON pointer into the document, without its `#`
 * @param of `api`: the document; `texts`: the document in which amounts are texts
 */
function validator(pointer: string, of: 'api' | 'texts'): ValidateFunction {
  const cached = compiled.get(of + pointer)
  if (cached) return cached
  if (!ajv) {
    ajv = new Ajv2020({
      strict: false,
      validateFormats: true,
      allErrors: false,
      code: { optimize: false },
    })
    ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/)
    ajv.addFormat('uri', /^https?:\/\/\S+$/)
    for (const name of ['decimal', 'double', 'uuid']) ajv.addFormat(name, true)
    for (const [name, each] of [
      ['api', document],
      ['texts', withTextAmounts(document as never) as typeof document],
    ] as const) {
      ajv.addSchema(
        {
          ...each,
          components: closed(each.components) as object,
          paths: closed(each.paths) as object,
        },
        name,
      )
    }
  }
  const made = ajv.compile({ $ref: `${of}#${pointer}` })
  compiled.set(of + pointer, made)
  return made
}

const escaped = (part: string) =>
  encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))

/**
 * Validates a value by a schema of the document.
 * @returns the violation, or null
 */
export function violationOf(
  pointer: readonly string[],
  value: unknown,
  of: 'api' | 'texts' = 'api',
): string | null {
  const check = validator(pointer.map((part) => `/${escaped(part)}`).join(''), of)
  return check(value)
    ? null
    : (check.errors ?? [])
        .map(
          ({ instancePath, message, params }) =>
            `${instancePath || 'the body'} ${message} ${JSON.stringify(params)}`,
        )
        .join('; ')
}

const paths = Object.keys(document.paths)
  .map((template) => ({
    template,
    pattern: new RegExp(
      `^${template.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`).replaceAll(/\{\w+\}/g, '[^/]+')}$`,
    ),
  }))
  .sort((a, b) => Number(a.template.includes('{')) - Number(b.template.includes('{')))

export interface Answered {
  method: string
  path: string
  status: number
  headers: Headers
  text: string
}

/**
 * Compares a response with the document: status, headers, content type, body and error code.
 * Ignores requests that are not operations of the document: pages, unknown paths and other methods.
 * @throws Error with the part of the response that the document does not describe
 */
export function assertMatchesDocument({ method, path, status, headers, text }: Answered): void {
  const plain = path.split('?', 1)[0] as string
  const closedProperties = paths.find(({ pattern }) => pattern.test(plain))
  const verb = method.toLowerCase()
  const operation = closedProperties && document.paths[closedProperties.template]?.[verb]
  if (!closedProperties || !operation || status === 405) return
  const fail = (what: string): never => {
    throw new Error(
      `docs/openapi.json, ${operation.operationId}: ${what}; ${method} ${path} was answered ${status} ${text.slice(0, 600)}`,
    )
  }
  const response =
    operation.responses[String(status)] ?? fail(`the status ${status} is not described`)
  const missing = HEADERS.find((name) => headers.get(name) === null)
  if (missing !== undefined) fail(`the header ${missing} is missing`)
  const reference = response.$ref?.split('/').at(-1)
  const content =
    reference === undefined ? response.content : document.components.responses[reference]?.content
  const type = headers.get('content-type')?.split(';', 1)[0] as string
  if (content?.[type] === undefined) fail(`${type} is not described`)
  // The response is the original one of an earlier, different request, which the described
  // `warning` header states.
  const isAnothers = headers.get('warning') !== null && 'warning' in (response.headers ?? {})
  if (!type.endsWith('json') || isAnothers) return
  const at =
    reference === undefined
      ? ['paths', closedProperties.template, verb, 'responses', String(status)]
      : ['components', 'responses', reference]
  const isText = headers.get('content-type')?.startsWith(TEXT_AMOUNTS) === true
  const wrong = violationOf(
    [...at, 'content', isText ? TEXT_AMOUNTS : type, 'schema'],
    JSON.parse(text),
    isText ? 'texts' : 'api',
  )
  if (wrong !== null) fail(wrong)
  const codes =
    reference === undefined ? undefined : document.components.responses[reference]?.['x-codes']
  const { code = '' } = codes ? (JSON.parse(text) as { code?: string }) : {}
  if (codes && !codes.includes(code)) fail(`the code ${code} is not described`)
}
