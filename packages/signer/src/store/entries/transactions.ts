import { z } from 'zod'
import { seenHead } from './people.ts'
import {
  CHARGES_MAX,
  count,
  digits,
  hexText,
  node,
  path,
  policyCharges,
  RUN_MAX,
  text,
  VOID_KEYS_MAX,
} from './values.ts'

const unsigned = z.strictObject({
  network: z.string(),
  bytes: hexText,
  inputs: z.array(z.strictObject({ path })).min(1),
  change: z.strictObject({ output: count, path }).optional(),
})
const decoded = z.strictObject({
  network: z.string(),
  asset: z.string(),
  payments: z.array(
    z.strictObject({ address: z.string(), amount: digits, tag: z.string().nullable() }),
  ),
  change: z
    .strictObject({
      address: z.string(),
      amount: digits,
      assets: z.record(z.string(), z.string()).optional(),
    })
    .nullable(),
  from: z.array(z.string()),
  fee_max: digits,
  fee_rate: z.string(),
  consumes: z.array(z.string()),
  fee_constant: z.string().optional(),
  valid_until: count.optional(),
  action: z
    .strictObject({
      kind: z.enum(['freeze', 'unfreeze', 'withdraw', 'delegate', 'undelegate']),
      resource: z.enum(['BANDWIDTH', 'ENERGY']).nullable(),
      amount: digits,
      receiver: z.string().nullable(),
    })
    .optional(),
  nonce: digits.nullable(),
  gas_limit: digits.nullable(),
  max_fee_per_gas: digits.nullable(),
  vsize: z.number().nullable(),
})
/** Further steps that the transaction belongs to: the payments that share a fuel. */
const beside = z
  .array(
    z.strictObject({
      step: z.string(),
      intent: z.string(),
      content: z.string(),
      transaction_id: z.string(),
    }),
  )
  .min(1)
const charge = z.strictObject({ budget: z.string(), amount: digits })
/** Data of each session of two nodes; the session IDs are never used again. */
const signing = { sessions: z.array(z.string()), partner: node, peer_head: seenHead.nullable() }

/** Entries about callers' requests, signed transactions, and voids. */
export const TRANSACTIONS = {
  seen: z.strictObject({
    api_key: z.string(),
    nonce: z.string(),
    intent: z.string(),
    content: z.string(),
    transaction_id: z.string(),
    iat: z.int(),
    exp: z.int(),
    timely: z.boolean(),
  }),
  /** Rule 13; amounts in the smallest unit. */
  rule: z.strictObject({
    rule: z.string(),
    api_key: z.string(),
    nonce: z.string(),
    content: z.string(),
    workspace: z.string(),
    sub_account: count,
    asset: z.string(),
    destination: z.string(),
    tag: z.string().nullable(),
    min_amount: digits,
    daily_cap: digits,
    expires_at: z.int(),
  }),
  /** A transaction that may be signed from now on; durable before round 1. */
  step: z
    .strictObject({
      step: z.string(),
      purpose: z.string(),
      workspace: z.string(),
      key_id: z.string(),
      intent: z.string().nullable(),
      content: z.string().nullable(),
      transaction_id: z.string().nullable(),
      beside: beside.optional(),
      unsigned_hash: z.string(),
      unsigned,
      decoded,
      consumes: z.array(z.string()),
      account: z.string().nullable(),
      nonce: digits.nullable(),
      /**
       * Earlier versions had one charge, and no fields for the fuel of an address and the rule of a
       * forward.
       */
      rule: z.string().nullable().optional(),
      fuelled: z
        .strictObject({
          kind: z.enum(['fuel', 'fees']),
          address: z.string(),
          amount: digits,
          network: z.string(),
        })
        .nullable()
        .optional(),
      charges: z.array(charge).max(CHARGES_MAX).optional(),
      charge: charge.nullable().optional(),
      /** Absent if no policy was in force. */
      policy: policyCharges.optional(),
      ...signing,
    })
    .refine(
      ({ account, nonce }) => (account === null) === (nonce === null),
      'account is required together with nonce',
    ),
  /**
   * Further charges of a recorded transaction, which is signed under another rule of the policy, or
   * again later.
   */
  charged: z.strictObject({
    step: text,
    unsigned_hash: text,
    workspace: text,
    policy: policyCharges,
  }),
  /** A further session of a recorded step, or of a key. */
  session: z.union([
    z.strictObject({ step_height: count, ...signing }),
    z.strictObject({
      kind: z.enum(['keygen', 'keygen-test', 'refresh', 'refresh-test']),
      key_id: z.string(),
      sessions: z.array(z.string()),
    }),
  ]),
  /** From here on this node signs only orders that the platform has authorised. */
  'orders-authorised': z.strictObject({}),
  /**
   * Transactions that this node does not sign by orders that the platform issued until then, Unix ms of
   * the platform's clock.
   */
  withdrawn: z.strictObject({ hashes: z.array(text).min(1).max(RUN_MAX), until: count }),
  signed: z.strictObject({
    step_height: count,
    signatures: z.array(
      z.strictObject({ signature: hexText, recovery_id: z.int().min(0).max(3).nullable() }),
    ),
    hash: z.string(),
    /** Absent in records of earlier versions. */ raw: z.string().optional(),
  }),
  nonce: z.strictObject({
    account: z.string(),
    nonce: digits,
    /** The peer that sent it. */ from: node,
  }),
  void: z.strictObject({
    keys: z.array(z.string()).max(VOID_KEYS_MAX),
    transaction_id: z.string().nullable(),
    signed_hashes: z.array(z.string()),
  }),
}
