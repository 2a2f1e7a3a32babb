import { z } from 'zod'
import { EVENT_TYPES, type EventType } from '../../core/database/event-types.ts'

const GROUPS = [...new Set(EVENT_TYPES.map((type) => type.split('.', 1)[0] as string))]
const PATTERNS = new Set<string>(['*', ...GROUPS.map((group) => `${group}.*`), ...EVENT_TYPES])

/** Maximum number of names that {@link typeFilter} accepts. */
export const PATTERNS_MAX = 50
const NAMES = [...PATTERNS].map((name) => name.replaceAll(/[.*]/g, String.raw`\$&`)).join('|')
/** Patterns for the OpenAPI document: one name, and several separated by commas. */
const EVENT_PATTERN = `^(${NAMES})$`
export const EVENTS_PATTERN = `^(${NAMES})(,(${NAMES})){0,${PATTERNS_MAX - 1}}$`

/**
 * A name of an event, of a group (`invoice.*`), or all (`*`), in upper or lower case. Parsed to
 * lower case.
 */
export const eventPattern = z
  .string()
  .max(100, 'must have at most 100 characters')
  .transform((input, context) => {
    const pattern = input.trim().toLowerCase()
    if (PATTERNS.has(pattern)) return pattern
    context.addIssue({
      code: 'custom',
      message:
        `"${input.slice(0, 60)}" is no event: * is all, ${GROUPS.map((group) => `${group}.*`).join(', ')} all of a group; ` +
        'GET /openapi.json names each',
    })
    return z.NEVER
  })
  .meta({
    type: 'string',
    pattern: EVENT_PATTERN,
    examples: ['transaction.confirmed', 'invoice.*', '*'],
  })

/** Returns the event types that patterns match. */
export const typesOf = (patterns: readonly string[]): EventType[] =>
  EVENT_TYPES.filter((type) =>
    patterns.some(
      (pattern) =>
        pattern === '*' ||
        pattern === type ||
        (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
    ),
  )
