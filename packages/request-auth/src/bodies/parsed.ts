import type { z } from 'zod'

/**
 * Parses an untrusted value with a schema.
 * @returns null if the library throws: its length checks compare a value that may be an object
 *   without a numeric form
 */
export function parsedBy<T>(
  schema: z.ZodType<T>,
  value: unknown,
  context?: z.core.ParseContext<z.core.$ZodIssue>,
): z.ZodSafeParseResult<T> | null {
  try {
    return schema.safeParse(value, context)
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}
