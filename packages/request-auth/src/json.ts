import { AuthError } from './types.ts'

// ES proposal "JSON.parse source text access", available in Node 22 and later; not yet in
// TypeScript's library.
declare global {
  interface JSON {
    rawJSON(text: string): object
    parse(
      text: string,
      reviver: (
        this: unknown,
        key: string,
        value: unknown,
        context: { source?: string },
      ) => unknown,
    ): unknown
  }
}

/** A number with the digits of the JSON text, because a double cannot hold 18 decimals. */
export class JsonNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const DEPTH_MAX = 32

/**
 * Rejects JSON that JSON.parse accepts and this service does not: deep nesting (a reviver
 * recurses), a duplicate key (it would be unclear which of the two amounts applies), and
 * `__proto__`. In valid JSON only a key is followed by a colon.
 */
function checkStructure(text: string): void {
  const keys: Set<string>[] = []
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x5b || code === 0x7b) {
      keys.push(new Set())
      if (keys.length > DEPTH_MAX)
        throw new AuthError('body', `JSON is nested deeper than ${DEPTH_MAX} levels`)
    } else if (code === 0x5d || code === 0x7d) keys.pop()
    else if (code === 0x22) {
      const start = at
      for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++)
        if (text.charCodeAt(at) === 0x5c) at++
      let next = at + 1
      while (next < text.length && ' \t\n\r'.includes(text[next] as string)) next++
      if (text.charCodeAt(next) !== 0x3a) continue
      const key = JSON.parse(text.slice(start, at + 1)) as string
      if (key === '__proto__') throw new AuthError('body', 'JSON key "__proto__" is not allowed')
      const seen = keys.at(-1)
      if (seen?.has(key))
        throw new AuthError('body', `JSON key ${JSON.stringify(key.slice(0, 100))} appears twice`)
      seen?.add(key)
    }
  }
}

/** Node 20, and browsers from before 2025, do not pass a number's source text to the reviver. */
const SHOWS_SOURCE = ((): boolean => {
  let shown: string | undefined
  JSON.parse(
    '1',
    (_key, value: unknown, context?: { source?: string }) => ((shown = context?.source), value),
  )
  return shown === '1' && typeof (JSON as { rawJSON?: unknown }).rawJSON === 'function'
})()

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*/g

/**
 * Parses JSON on runtimes that do not pass the source text to the reviver: values are first
 * converted to strings whose first letter states their type.
 */
export function parseWithoutSource(text: string): unknown {
  JSON.parse(text)
  const marked = text.replace(STRING_OR_NUMBER, (token, colon?: string) =>
    token.startsWith('"') ? (colon === undefined ? `"s${token.slice(1)}` : token) : `"n${token}"`,
  )
  return JSON.parse(marked, (_key, value: unknown) => {
    if (typeof value !== 'string') return value
    return value.startsWith('n') ? new JsonNumber(value.slice(1)) : value.slice(1)
  })
}

/** Serializes JSON on runtimes without `JSON.rawJSON`. */
export function stringifyWithoutRaw(value: unknown): string | undefined {
  if (value instanceof JsonNumber) {
    if (typeof JSON.parse(value.text) !== 'number' || value.text !== value.text.trim())
      throw new SyntaxError(`${value.text} is not a number`)
    return value.text
  }
  if (Array.isArray(value))
    return `[${value.map((each) => stringifyWithoutRaw(each) ?? 'null').join(',')}]`
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return JSON.stringify(value)
  const fields = Object.entries(value).map(([name, each]) => [
    JSON.stringify(name),
    stringifyWithoutRaw(each),
  ])
  return `{${fields
    .filter(([, each]) => each !== undefined)
    .map(([name, each]) => `${name}:${each}`)
    .join(',')}}`
}

/**
 * Parses strict JSON (RFC 8259): duplicate keys and `__proto__` are rejected, numbers become {@link
 * JsonNumber}.
 * @throws AuthError with claim `body` and a sentence
 */
export function parseJson(text: string): unknown {
  try {
    checkStructure(text)
    if (!SHOWS_SOURCE) return parseWithoutSource(text)
    return JSON.parse(text, (_key, value, context) =>
      typeof value === 'number' ? new JsonNumber(context.source as string) : value,
    )
  } catch (error) {
    if (error instanceof AuthError) throw error
    throw new AuthError('body', 'is not valid JSON')
  }
}

/**
 * Serializes to JSON text. {@link JsonNumber} values become numbers with exactly their own digits.
 */
export function stringifyJson(value: unknown): string {
  if (!SHOWS_SOURCE) return stringifyWithoutRaw(value) as string
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner instanceof JsonNumber ? JSON.rawJSON(inner.text) : inner,
  )
}
