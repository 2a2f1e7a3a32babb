/**
 * One field of an answer as text, by its path of names and positions: `address`, `data.0.id`. Of a signed request's answer
 * the path begins in its body. What is not there is empty, and an object stays JSON.
 */
export function fieldOf(result: Record<string, unknown>, path: string): string {
  let value: unknown = 'status' in result && 'body' in result ? result['body'] : result
  for (const name of path.split('.')) {
    value = typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
  }
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
