/** Value of a query parameter that is not percent-encoded UTF-8. */
export const UNDECODABLE = Symbol('not percent-encoded UTF-8')

/**
 * Decodes a part of a query string.
 * @returns null if a percent sign is not followed by two hexadecimal digits, or the bytes are not
 *   UTF-8
 */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

/**
 * Parses a query string in form encoding. A parameter that appears more than once has a list of its
 * values. A parameter that cannot be decoded has the value {@link UNDECODABLE}; if its name cannot
 * be decoded, the name is returned as sent.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const parameters = Object.create(null) as Record<string, unknown>
  for (const part of text.split('&')) {
    if (part === '') continue
    const at = part.includes('=') ? part.indexOf('=') : part.length
    const name = decoded(part.slice(0, at))
    const value = name === null ? null : decoded(part.slice(at + 1))
    const key = name ?? part.slice(0, at)
    const input = value ?? UNDECODABLE
    parameters[key] = Object.hasOwn(parameters, key) ? [parameters[key], input].flat() : input
  }
  return parameters
}
