/** A value of a query string that is not percent-encoded UTF-8. */
export const UNDECODABLE = Symbol('not percent-encoded UTF-8')

/**
 * @returns null where a percent sign is not followed by two hexadecimal digits, or the bytes are
 *   not UTF-8
 */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

/**
 * The parameters of a query string, as forms encode them. One that is given twice has a list of its
 * values; one that cannot be decoded has {@link UNDECODABLE}, and keeps its name as it was sent
 * where that is the name.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const parameters = Object.create(null) as Record<string, unknown>
  for (const part of text.split('&')) {
    if (part === '') continue
    const at = part.includes('=') ? part.indexOf('=') : part.length
    const name = decoded(part.slice(0, at))
    const value = name === null ? null : decoded(part.slice(at + 1))
    const key = name ?? part.slice(0, at)
    const given = value ?? UNDECODABLE
    parameters[key] = Object.hasOwn(parameters, key) ? [parameters[key], given].flat() : given
  }
  return parameters
}
