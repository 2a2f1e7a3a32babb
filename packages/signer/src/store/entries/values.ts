import { z } from 'zod'

/** Schemas that entries of many kinds share. */
export const curve = z.enum(['secp256k1', 'ed25519'])
/** An amount or a nonce as decimal text, which the state parses as bigint. */
export const digits = z.string().regex(/^[0-9]{1,78}$/)
/** Maximum number of budgets and windows that one step counts against. */
export const CHARGES_MAX = 32
/** Maximum number of names that one entry voids. */
export const VOID_KEYS_MAX = 256
export const count = z.int().min(0)
export const node = z.int().min(1).max(3)
export const path = z.array(z.int().min(0).max(0x7fffffff)).max(8)
/**
 * Without a repeated group, which would overflow the regular expression's stack for megabytes of
 * text.
 */
export const hexText = z
  .string()
  .min(2)
  .refine((text) => text.length % 2 === 0 && !/[^0-9a-f]/.test(text), 'must be lower-case hex')
export const nodeSignatures = z.array(z.strictObject({ node, signature: z.string() }))
