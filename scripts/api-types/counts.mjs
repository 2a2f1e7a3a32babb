/** `total` is a count in a page, and an amount in a balance; the client tells them apart. */
const AMBIGUOUS = new Set(['total'])

/**
 * Returns the names of the fields of responses and events whose numbers are counts, sorted: their
 * schema is an integer or has the format `double`. All other numbers are decimals.
 * @param document an OpenAPI 3.1 document, parsed
 * @throws Error if a name is a count in one schema and a decimal in another
 */
export function countsOf({ components, webhooks }) {
  const [counts, decimals] = [new Set(), new Set()]
  const visit = (value) => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, schema] of Object.entries(value.properties ?? {})) {
      const variants = [schema, schema.items ?? {}, ...(schema.anyOf ?? [])]
      const isCount = ({ type, format }) => [type].flat().includes('integer') || format === 'double'
      if (variants.some(isCount)) counts.add(name)
      if (variants.some(({ format }) => format === 'decimal')) decimals.add(name)
    }
    Object.values(value).forEach(visit)
  }
  for (const [name, schema] of Object.entries(components.schemas))
    if (!name.endsWith('Request')) visit(schema)
  visit(webhooks)
  const both = [...counts].filter((name) => decimals.has(name) && !AMBIGUOUS.has(name))
  if (both.length > 0)
    throw new Error(
      `${both.join(', ')}: a count in one schema and a decimal in another; rename one of the fields`,
    )
  return [...counts].filter((name) => !AMBIGUOUS.has(name)).sort()
}
