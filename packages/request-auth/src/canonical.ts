/**
 * Returns a value in the JSON Canonicalization Scheme (RFC 8785): no spaces, names in the order of
 * their UTF-16 units. Undefined fields are left out. Only integers are accepted, so no rule for
 * other numbers is needed.
 *
 * @throws TypeError for a number that is not a safe integer, or a value that JSON cannot represent
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const names = Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([name]) => name)
      .sort()
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson((value as Record<string, unknown>)[name])}`).join(',')}}`
  }
  if (typeof value === 'number' && !Number.isSafeInteger(value))
    throw new TypeError('canonical JSON cannot contain a number that is not an integer')
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) throw new TypeError(`canonical JSON cannot contain a ${typeof value}`)
  return text
}
