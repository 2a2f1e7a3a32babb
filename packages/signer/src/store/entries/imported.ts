import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import {
  CHARGES_MAX,
  curve,
  digits,
  node,
  path,
  policyCharges,
  text,
  VOID_KEYS_MAX,
} from './values.ts'

/**
 * Used only for the platform's own recovery: a restored node returns what its peers have sent to
 * it.
 */
const unsigned = z.object({
  network: text,
  bytes: z.string().regex(/^[0-9a-f]{2,200000}$/),
  inputs: z.array(z.object({ path })).min(1).max(400),
  change: z.object({ output: z.int().min(0), path }).optional(),
})
const amounts = z.object({ address: text, amount: digits, tag: text.nullable() })
const charge = z.object({ budget: text, amount: digits })

/**
 * Entries that a restored node copies from a peer's record: of the kinds that bind it too, the
 * fields that it needs, within limits, because another node's data is not trusted.
 */
export const IMPORTED = {
  seen: z.object({
    api_key: text,
    nonce: text,
    intent: text,
    content: text,
    transaction_id: text,
    iat: z.int(),
    exp: z.int(),
    timely: z.boolean(),
  }),
  step: z
    .object({
      step: text,
      unsigned_hash: text,
      // A peer's step without these three fields is still binding: only charges to windows need the
      // workspace.
      purpose: text.optional().catch(undefined),
      workspace: text.optional().catch(undefined),
      unsigned: unsigned.optional().catch(undefined),
      consumes: z.array(text).max(1000),
      intent: text.nullable(),
      content: text.nullable(),
      transaction_id: text.nullable(),
      beside: z
        .array(z.object({ step: text, intent: text, content: text, transaction_id: text }))
        .max(1000)
        .optional(),
      account: text.nullable(),
      nonce: digits.nullable(),
      rule: text.nullable().optional(),
      /** In records of earlier versions, in which a step had one charge. */
      charge: charge.nullable().optional(),
      charges: z.array(charge).max(CHARGES_MAX).optional(),
      policy: policyCharges.optional(),
      fuelled: z
        .object({ kind: z.enum(['fuel', 'fees']), network: text, address: text, amount: digits })
        .nullable()
        .optional(),
      sessions: z.array(text).max(1000),
      decoded: z.object({
        network: text,
        asset: text,
        payments: z.array(amounts).max(1000),
        change: z.object({ address: text, amount: digits }).nullable(),
        from: z.array(text).max(1000),
        fee_max: digits,
        fee_rate: text,
        consumes: z.array(text).max(1000),
        nonce: digits.nullable(),
        gas_limit: digits.nullable(),
        max_fee_per_gas: digits.nullable(),
        vsize: z.number().nullable(),
        valid_until: z.int().min(0).optional(),
        action: z
          .object({
            kind: text,
            resource: text.nullable(),
            amount: digits,
            receiver: text.nullable(),
          })
          .optional(),
      }),
    })
    .refine((step) => (step.account === null) === (step.nonce === null))
    .refine(
      (step) => step.policy === undefined || step.workspace !== undefined,
      'workspace is required together with policy',
    ),
  charged: z.object({ step: text, unsigned_hash: text, workspace: text, policy: policyCharges }),
  session: z.object({ sessions: z.array(text).max(1000) }),
  void: z.object({ keys: z.array(text).max(VOID_KEYS_MAX) }),
  nonce: z.object({ account: text, nonce: digits }),
  rule: z.object({
    rule: text,
    api_key: text,
    nonce: text,
    content: text,
    workspace: text,
    sub_account: z.int(),
    asset: text,
    destination: text,
    tag: text.nullable(),
    min_amount: digits,
    daily_cap: digits,
    expires_at: z.int(),
  }),
  revoke: z.object({ api_key: text }),
  'sub-account': z.object({ workspace: text, name: text, index: z.int().min(1).max(0x7fffffff) }),
  allocate: z.object({ workspace: text, curve, key_id: text, epoch: z.int() }),
}
export type ImportedKind = keyof typeof IMPORTED

/**
 * A copied entry is parsed strictly when it is read: its body must have exactly the fields that
 * {@link IMPORTED} copies of its kind.
 */
const imported = <K extends ImportedKind>(kind: K) =>
  z.strictObject({
    at: z.int(),
    kind: z.literal(kind),
    body: z.custom<z.output<(typeof IMPORTED)[K]>>((body) => {
      const parsed = IMPORTED[kind].safeParse(body)
      return parsed.success && isDeepStrictEqual(JSON.parse(JSON.stringify(parsed.data)), body)
    }, `is not accepted for a ${kind}`),
    from: node,
  })

/** Entry by which a restored node stores a peer's entry, with the peer's time. */
export const importedSchema = z.discriminatedUnion('kind', [
  imported('seen'),
  imported('step'),
  imported('charged'),
  imported('session'),
  imported('void'),
  imported('nonce'),
  imported('rule'),
  imported('revoke'),
  imported('sub-account'),
  imported('allocate'),
])
