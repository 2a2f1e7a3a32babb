import type { z } from 'zod'

/**
 * Reads a value that somebody sent by its schema.
 * @returns null where the library throws: its checks of length compare what may be an object that
 *   no number can be made of
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
