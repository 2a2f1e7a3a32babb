import { parse } from 'lossless-json'
import { AuthError } from './types.ts'

// ES proposal "JSON.parse source text access", shipped by Node 22 and later; not yet in TypeScript's library.
declare global {
  interface JSON {
    rawJSON(text: string): object
  }
}

/** A number as it stands in the JSON text: a double cannot hold 18 decimals. */
export class JsonNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const DEPTH_MAX = 32

/**
 * Strict JSON (RFC 8259): duplicate keys are refused, `__proto__` is refused, numbers come as {@link JsonNumber}.
 * Objects are plain objects, so that schemas can look at them.
 * @throws AuthError with claim `body` and a sentence
 */
export function parseJson(text: string): unknown {
  // Nesting is checked on the text: the parser itself would run out of stack on a hostile one.
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (inString) {
      if (code === 0x5c) at++
      else if (code === 0x22) inString = false
    } else if (code === 0x22) inString = true
    else if (code === 0x5b || code === 0x7b) {
      depth++
      if (depth > DEPTH_MAX) throw new AuthError('body', `JSON is nested deeper than ${DEPTH_MAX} levels`)
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  let duplicate: string | null = null
  let value: unknown
  try {
    value = parse(text, null, {
      parseNumber: (number) => new JsonNumber(number),
      onDuplicateKey: ({ key }) => {
        duplicate ??= key
        return undefined
      },
    })
  } catch (error) {
    if (duplicate !== null) throw new AuthError('body', `JSON key ${JSON.stringify(duplicate)} appears twice`)
    throw new AuthError('body', `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 120) : 'unreadable'}`)
  }
  if (duplicate !== null) throw new AuthError('body', `JSON key ${JSON.stringify(duplicate)} appears twice`)
  if (/"(?:_|\\u005f){2}proto(?:_|\\u005f){2}"\s*:/i.test(text)) throw new AuthError('body', 'JSON key "__proto__" is not allowed')
  return value
}

/**
 * JSON text in which {@link JsonNumber} values stand as numbers with exactly their own digits.
 * @throws RangeError where a JsonNumber does not hold a JSON number
 */
export function stringifyJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (inner instanceof JsonNumber ? JSON.rawJSON(inner.text) : inner))
}
