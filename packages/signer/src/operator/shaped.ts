import type { z } from 'zod'
import { Refusal } from '../errors.ts'

/** A command's body in its shape. @throws Refusal BAD_ORDER that names the field */
export function shaped<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new Refusal('BAD_ORDER', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'has another shape'}`.slice(0, 300))
}
