import { z } from 'zod'

/** What a restored node takes from a peer's record, and the shapes it accepts: another node's writing is not trusted to be readable. */
const text = z.string().max(4096)
const digits = z.string().regex(/^[0-9]{1,78}$/)
const paths = z.array(z.int().min(0).max(0x7fffffff)).max(8)
/** For the platform's own recovery only: a node that was restored tells what its peers told it. */
const unsigned = z.object({
  network: text, bytes: z.string().regex(/^[0-9a-f]{2,200000}$/), inputs: z.array(z.object({ path: paths })).min(1).max(400),
  change: z.object({ output: z.int().min(0), path: paths }).optional(),
})
const amounts = z.object({ address: text, amount: digits, tag: text.nullable() })

export const IMPORTED: Readonly<Record<string, z.ZodType>> = {
  seen: z.object({ api_key: text, nonce: text, intent: text, content: text, transaction_id: text, iat: z.int(), exp: z.int(), timely: z.boolean() }),
  step: z.object({
    step: text,
    unsigned_hash: text,
    // Nothing here depends on these: without them the step counts all the same.
    purpose: text.optional().catch(undefined),
    workspace: text.optional().catch(undefined),
    unsigned: unsigned.optional().catch(undefined),
    consumes: z.array(text).max(1000),
    intent: text.nullable(),
    content: text.nullable(),
    transaction_id: text.nullable(),
    account: text.nullable(),
    nonce: digits.nullable(),
    rule: text.nullable().optional(),
    /** Records of before a step could have several. */
    charge: z.object({ budget: text, amount: digits }).nullable().optional(),
    charges: z.array(z.object({ budget: text, amount: digits })).max(4).optional(),
    fuelled: z.object({ kind: z.enum(['fuel', 'fees']), network: text, address: text, amount: digits }).nullable().optional(),
    sessions: z.array(text).max(1000),
    decoded: z.object({
      network: text, asset: text, payments: z.array(amounts).max(1000), change: z.object({ address: text, amount: digits }).nullable(), from: z.array(text).max(1000),
      fee_max: digits, fee_rate: text, consumes: z.array(text).max(1000), nonce: digits.nullable(), gas_limit: digits.nullable(), max_fee_per_gas: digits.nullable(), vsize: z.number().nullable(),
      valid_until: z.int().min(0).optional(), action: z.object({ kind: text, resource: text.nullable(), amount: digits, receiver: text.nullable() }).optional(),
    }),
  }).refine((step) => (step.account === null) === (step.nonce === null)),
  session: z.object({ sessions: z.array(text).max(1000) }),
  void: z.object({ keys: z.array(text).max(8) }),
  nonce: z.object({ account: text, nonce: digits }),
  rule: z.object({
    rule: text, api_key: text, nonce: text, content: text, workspace: text, sub_account: z.int(), asset: text, destination: text, tag: text.nullable(),
    min_amount: digits, daily_cap: digits, expires_at: z.int(),
  }),
  revoke: z.object({ api_key: text }),
  'sub-account': z.object({ workspace: text, name: text, index: z.int().min(1).max(0x7fffffff) }),
  allocate: z.object({ workspace: text, curve: z.enum(['secp256k1', 'ed25519']), key_id: text, epoch: z.int() }),
}

/** The part of a peer's entry that binds this node too, or null. */
export function importable(kind: string, body: unknown): Record<string, unknown> | null {
  const schema = Object.hasOwn(IMPORTED, kind) ? IMPORTED[kind] : undefined
  const parsed = schema?.safeParse(body)
  return parsed?.success ? (parsed.data as Record<string, unknown>) : null
}
