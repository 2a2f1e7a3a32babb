import { z } from 'zod'

/** Schemas that entries of many kinds share. */
export const curve = z.enum(['secp256k1', 'ed25519'])
/** An amount or a nonce as decimal text, which the state parses as bigint. */
export const digits = z.string().regex(/^[0-9]{1,78}$/)
/** Maximum number of budgets and windows that one step counts against. */
export const CHARGES_MAX = 32
/** Maximum number of names that one entry voids. */
export const VOID_KEYS_MAX = 256
/** Maximum number of transactions in one session. */
export const RUN_MAX = 16
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
/** Names and hashes in entries that a restored node imports. */
export const text = z.string().max(4096)
/** Maximum number of assets of one charge: what moves, and the native coin for its fee. */
const CHARGED_ASSETS_MAX = 3
/** Smallest units by asset. */
export const chargedAmounts = z
  .record(z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/), digits)
  .refine(
    (amounts) => Object.keys(amounts).length <= CHARGED_ASSETS_MAX,
    `must name at most ${CHARGED_ASSETS_MAX} assets`,
  )
/**
 * The policy document by which a transaction was allowed, the rule that allowed it (`via`), and the
 * windows to which it is charged. The same bounds apply to own and to imported entries.
 */
export const policyCharges = z.strictObject({
  number: z.int().min(1),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  via: z.string().max(64),
  charges: z
    .array(
      z.strictObject({
        key: z.string().max(1000),
        hours: z.int().min(1).max(168),
        amounts: chargedAmounts,
      }),
    )
    .max(CHARGES_MAX),
})
export type PolicyCharges = z.output<typeof policyCharges>
export const nodeSignatures = z.array(z.strictObject({ node, signature: z.string() }))
