import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { unsignedSchema } from '../policy/order.ts'

const whose = {
  version: z.literal(1),
  workspace: z.string(),
  network: z.string(),
  to: z.string(),
  tag: z.string().nullable(),
  at: z.string(),
}
const planned = z.strictObject({
  unsigned: unsignedSchema,
  asset: z.string(),
  from: z.string(),
  amount: z.string(),
  fuel: z.array(z.int().min(0)).length(3).optional(),
})
const left = z.strictObject({
  address: z.string(),
  asset: z.string(),
  amount: z.string(),
  why: z.string(),
  waits: z.literal(true).optional(),
})
const outcome = { left: z.array(left), more: z.boolean() }
const signed = z.strictObject({
  network: z.string(),
  raw: z.string().min(1),
  hash: z.string().min(1),
})

/** Data that was read from the chain, for one workspace on one network. */
export const gatheredSchema = z.strictObject({ ...whose, found: z.record(z.string(), z.unknown()) })
/** Unsigned transactions, and the funds that they do not move. */
export const preparedSchema = z.strictObject({
  ...whose,
  ...outcome,
  transactions: z.array(planned),
})
export const signedSchema = z.strictObject({ ...whose, ...outcome, signed: z.array(signed) })
export type GatheredFile = z.infer<typeof gatheredSchema>
export type PreparedFile = z.infer<typeof preparedSchema>
export type SignedFile = z.infer<typeof signedSchema>

/**
 * Reads a file that an earlier step of a recovery wrote, on any machine.
 * @throws Error that names the file and what is wrong in it
 */
export function readRecoveryFile<T>(schema: z.ZodType<T>, path: string): T {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Error(
      `--in: ${path} ${error instanceof SyntaxError ? 'is not JSON' : 'cannot be read'}`,
      { cause: error },
    )
  }
  const { data, error } = schema.safeParse(value)
  const [wrong] = error?.issues ?? []
  const at = wrong?.path.join('.') || 'the whole'
  if (wrong)
    throw new Error(`--in: ${path} is not the output of the previous step: ${at}: ${wrong.message}`)
  return data as T
}
