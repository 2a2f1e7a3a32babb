const NAMES_MAX = 20

/** A field of a result: its text, or, if the result does not have it, the reason. */
export type Field = { isFound: true; text: string } | { isFound: false; reason: string }

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value))
    return value.length === 0
      ? 'an empty list'
      : `a list of ${value.length}, from 0 to ${value.length - 1}`
  if (typeof value !== 'object') return `a ${typeof value} without fields`
  const names = Object.keys(value)
  const shown = names.slice(0, NAMES_MAX).join(', ')
  return names.length === 0
    ? 'an empty object'
    : `an object with ${shown}${names.length > NAMES_MAX ? ', …' : ''}`
}

/**
 * Returns one field of a result by its path of names and indexes: `address`, `data.0.id`. For the
 * response to a signed request, the path starts in its body. `null` becomes an empty string, and an
 * object remains JSON.
 */
export function findField(result: Record<string, unknown>, path: string): Field {
  let value: unknown = 'status' in result && 'body' in result ? result['body'] : result
  const walked: string[] = []
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) {
      const place = walked.length === 0 ? 'the response' : `"${walked.join('.')}"`
      return {
        isFound: false,
        reason: `the response has no field "${path}": ${place} is ${kindOf(value)}`,
      }
    }
    value = (value as Record<string, unknown>)[name]
    walked.push(name)
  }
  if (value === null) return { isFound: true, text: '' }
  return { isFound: true, text: typeof value === 'object' ? JSON.stringify(value) : String(value) }
}

/** Returns the text of a field; empty if the result does not have it. */
export function fieldOf(result: Record<string, unknown>, path: string): string {
  const field = findField(result, path)
  return field.isFound ? field.text : ''
}
