import { z } from 'zod'
import { EVENT_TYPES, type EventType } from '../database/event-types.ts'

const GROUPS = [...new Set(EVENT_TYPES.map((type) => type.split('.', 1)[0] as string))]
const PATTERNS = new Set<string>(['*', ...GROUPS.map((group) => `${group}.*`), ...EVENT_TYPES])

/** A name of an event, all of a group (`invoice.*`), or all (`*`), in any case. Read as lower case. */
export const eventPattern = z.string().max(100).transform((given, context) => {
  const pattern = given.trim().toLowerCase()
  if (PATTERNS.has(pattern)) return pattern
  context.addIssue({
    code: 'custom',
    message: `"${given.slice(0, 60)}" is no event: * is all, ${GROUPS.map((group) => `${group}.*`).join(', ')} all of a group; `
      + 'GET /openapi.json names each',
  })
  return z.NEVER
}).meta({ type: 'string', examples: ['transaction.confirmed', 'invoice.*', '*'] })

/** The types that patterns name. */
export const typesOf = (patterns: readonly string[]): EventType[] => EVENT_TYPES.filter((type) => patterns.some((pattern) =>
  pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))))
