import type { RpcResponse } from './geth.ts'

const HEX = /^0x[0-9a-f]*$/i

/** Returns the structure of a value: names of fields, and types. Texts in hex are a type. */
function shapeOf(value: unknown): unknown {
  if (value === null) return 'null'
  if (Array.isArray(value)) {
    const shapes = new Map(value.map(shapeOf).map((shape) => [JSON.stringify(shape), shape]))
    return [...shapes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, shape]) => shape)
  }
  if (typeof value === 'object')
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, each]) => [name, shapeOf(each)]),
    )
  if (typeof value === 'string' && HEX.test(value)) return 'hex'
  return typeof value
}

/** Returns an error's text without the numbers, addresses and hashes in it. */
const patternOf = (message: string): string =>
  message.replaceAll(/0x[0-9a-f]+/gi, 'HEX').replaceAll(/\d+(?:\.\d+)?/g, 'N')

/** Returns the parts of a response that a client depends on. */
function partsOf({ status, body }: RpcResponse): Record<string, unknown> {
  if (Array.isArray(body)) return { status, body: shapeOf(body) }
  const { result, error, ...rest } = body
  return {
    status,
    envelope: shapeOf(rest),
    ...(result === undefined ? {} : { result: shapeOf(result) }),
    ...(error === undefined || error === null
      ? {}
      : {
          code: error.code,
          message: patternOf(error.message),
          ...(error.data === undefined ? {} : { data: shapeOf(error.data) }),
        }),
  }
}

/** Returns the differences of two values as `path: ours, theirs`. */
function differences(path: string, ours: unknown, theirs: unknown): string[] {
  if (JSON.stringify(ours) === JSON.stringify(theirs)) return []
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  if (Array.isArray(ours) && Array.isArray(theirs) && ours.length === 1 && theirs.length === 1)
    return differences(`${path}[]`, ours[0], theirs[0])
  if (isObject(ours) && isObject(theirs))
    return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])]
      .sort()
      .flatMap((name) => differences(`${path}.${name}`, ours[name], theirs[name]))
  const said = (value: unknown) =>
    value === undefined ? 'none' : typeof value === 'string' ? value : JSON.stringify(value)
  return [`${path}: ${said(ours)} | ${said(theirs)}`]
}

/**
 * Compares two responses to the same request: status of HTTP, presence of result or error, code and
 * pattern of the message, and fields and types of the result.
 * @param name of the request
 * @returns a line `name.path: first | second` for each difference
 */
export const compareAnswers = (name: string, first: RpcResponse, second: RpcResponse): string[] =>
  differences(name, partsOf(first), partsOf(second))
