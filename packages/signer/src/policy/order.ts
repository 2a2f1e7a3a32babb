import type { DecodedTransaction, Network } from '@custody/chains'
import {
  carriedApproval,
  LIMITS,
  type Act,
  type Charge as WindowCharge,
  type TankOrder,
} from '@custody/policy'
import { z } from 'zod'
import { signedRequestSchema } from '../intent/request.ts'
import type { CertifiedKey } from '../keys/keyring.ts'
import { hexText } from '../store/entries/values.ts'
import type { StandingRule } from '../store/state.ts'

const decimalSchema = z.string().regex(/^(0|[1-9][0-9]{0,77})$/)
const indexSchema = z.int().min(0).max(0x7fffffff)
const nameSchema = z.string().min(1).max(128)
export const uuidSchema = z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
/** Hexadecimal length of a transaction of 4 MiB, more than any block can contain. */
const HEX_LENGTH_MAX = 8 * 1024 * 1024
const hexSchema = hexText.max(HEX_LENGTH_MAX)

/** A transaction to be signed, in its transport form. */
export const unsignedSchema = z.strictObject({
  network: nameSchema,
  bytes: hexSchema,
  inputs: z
    .array(z.strictObject({ path: z.array(indexSchema).max(8), previous: hexSchema.optional() }))
    .min(1)
    .max(400),
  change: z.strictObject({ output: z.int().min(0), path: z.array(indexSchema).max(8) }).optional(),
})

const receiptSchema = z.strictObject({
  receipt: z.strictObject({
    node: z.int().min(1).max(3),
    api_key: z.string().max(256),
    nonce: z.string().max(256),
    intent: z.string().max(64),
    seen_at: z.int().min(0),
  }),
  signature: z.string().max(128),
})
export type Receipt = z.infer<typeof receiptSchema>

const provenSchema = {
  request: signedRequestSchema,
  receipts: z.array(receiptSchema).max(3).optional(),
}
const paySchema = z.strictObject({
  kind: z.literal('pay'),
  ...provenSchema,
  speed_up: z.strictObject(provenSchema).optional(),
})
const sweepSchema = z.strictObject({
  kind: z.literal('sweep'),
  sub_account: indexSchema,
  asset: nameSchema,
  address_index: indexSchema,
})
/** `id`: identifies one forward of the rule; chosen by the platform, and valid for one payment. */
const forwardSchema = z.strictObject({
  kind: z.literal('forward'),
  id: uuidSchema,
  rule: signedRequestSchema,
  receipts: provenSchema.receipts,
})
/** Maximum number of transactions of one payment: the first and its replacements. */
const REPLACED_MAX = 16
/**
 * Cancellation of a payment, or of one forward: by the caller's own cancellation, or by the
 * deletion of the rule. `replaces`: transactions of the payment with their signatures, for nodes
 * that do not have them on record.
 */
const cancelSchema = z.strictObject({
  kind: z.literal('cancel'),
  of: z.discriminatedUnion('kind', [paySchema, forwardSchema]),
  ...provenSchema,
  replaces: z
    .array(z.strictObject({ unsigned: unsignedSchema, signed: hexSchema }))
    .max(REPLACED_MAX)
    .optional(),
})
/** `step`: the position of this transaction within the caller's stake, unstake or release. */
const stakeSchema = z.strictObject({
  kind: z.literal('stake'),
  step: z.enum(['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw']),
  ...provenSchema,
})
/** Merges coins of one wallet, by the caller's signed request. */
const consolidateSchema = z.strictObject({ kind: z.literal('consolidate'), ...provenSchema })
/**
 * Maximum number of transfers that one fuel may pay for. The order contains a signed request for
 * each, and each is verified.
 */
const FUEL_PARTS_MAX = 64
/** Maximum cost of the transaction that is fuelled. */
const costSchema = {
  gas: decimalSchema,
  max_fee_per_gas: decimalSchema,
  l1_fee: decimalSchema.optional(),
}
/** `beside`: further payments from the same source address that the same fuel pays for. */
const fuelSchema = z.strictObject({
  kind: z.literal('fuel'),
  for: z.discriminatedUnion('kind', [
    paySchema,
    cancelSchema,
    sweepSchema,
    forwardSchema,
    stakeSchema,
  ]),
  ...costSchema,
  beside: z
    .array(z.strictObject({ for: paySchema, ...costSchema }))
    .min(1)
    .max(FUEL_PARTS_MAX - 1)
    .optional(),
})
/** Energy of the tank's stake: to the source address of the transaction in `for`, or back. */
const lendSchema = z.strictObject({
  kind: z.literal('lend'),
  step: z.enum(['delegate', 'undelegate']),
  for: z.discriminatedUnion('kind', [paySchema, sweepSchema, forwardSchema]),
})
const tankStakeSchema = z.strictObject({ kind: z.literal('tank-stake'), order: nameSchema })
const drainSchema = z.strictObject({ kind: z.literal('drain'), order: nameSchema })

/**
 * `to_path`: own address that receives native coin for the fees of its tokens; absent: the
 * destination of the operator's order is paid.
 */
const recoverSchema = z.strictObject({
  kind: z.literal('recover'),
  order: nameSchema,
  to_path: z.array(indexSchema).length(3).optional(),
})

/**
 * What the platform adds for the workspace's policy. A node verifies it and never relies on it.
 * `via`: ID of the allow rule by which the transaction is to pass; `to_path`: derivation path of a
 * destination that is an own address of the workspace; `approvals`: of the payment or stake, and in
 * a fuel order of each payment that it is for.
 */
const orderPolicySchema = z.strictObject({
  via: z.string().min(1).max(64).optional(),
  to_path: z.array(indexSchema).length(3).optional(),
  approvals: z
    .array(carriedApproval.extend({ decision: z.literal('approve') }))
    .max(LIMITS.approvals * FUEL_PARTS_MAX)
    .optional(),
})

/** An order of the platform. Both nodes of a pair evaluate all of it. */
export const orderSchema = z.strictObject({
  workspace: nameSchema,
  purpose: z.discriminatedUnion('kind', [
    paySchema,
    cancelSchema,
    fuelSchema,
    sweepSchema,
    drainSchema,
    forwardSchema,
    stakeSchema,
    lendSchema,
    tankStakeSchema,
    recoverSchema,
    consolidateSchema,
  ]),
  unsigned: unsignedSchema,
  policy: orderPolicySchema.optional(),
})
export type Order = z.infer<typeof orderSchema>
export type Purpose = Order['purpose']
export type Pay = z.infer<typeof paySchema>
export type Cancel = z.infer<typeof cancelSchema>
/** A signed request with the receipts that allow its use after its expiry. */
export type Signed = Pick<Pay, 'request' | 'receipts'>
export type Sweep = z.infer<typeof sweepSchema>
export type Forward = z.infer<typeof forwardSchema>
export type Stake = z.infer<typeof stakeSchema>
export type Consolidate = z.infer<typeof consolidateSchema>
export type Lend = z.infer<typeof lendSchema>
export type Fuel = z.infer<typeof fuelSchema>
/** Maximum cost of one of the transactions that a fuel pays for. */
export type FuelPart = Pick<Fuel, 'gas' | 'max_fee_per_gas' | 'l1_fee'>
export type Drain = z.infer<typeof drainSchema>
export type Recover = z.infer<typeof recoverSchema>
export type TankStake = z.infer<typeof tankStakeSchema>

/** Input of every rule module: the transaction as this node decoded it, with its context. */
export interface Subject {
  order: Order
  network: Network
  key: CertifiedKey
  decoded: DecodedTransaction
}

declare const COVERED: unique symbol
/** A transaction of which an authority permits everything that it does (`gate/effects.ts`). */
export type Covered = Subject & { readonly [COVERED]: true }

export interface SeenRequest {
  api_key: string
  nonce: string
  intent: string
  content: string
  transaction_id: string
  iat: number
  exp: number
  timely: boolean
}

/**
 * An amount that is charged to a limit for 24 hours. `largest`: only the largest charge among one
 * step's transactions counts, because they exclude each other; `rule`: the limit is a standing
 * rule's own cap.
 */
export interface Charge {
  budget: string
  amount: bigint
  limit: bigint
  largest?: boolean
  rule?: boolean
}

export type { WindowCharge }
/** The policy document and the rule (`via`) that allow a transaction, and what they charge. */
export interface VerdictPolicy {
  number: number
  /** Of the document, in hex. */
  hash: string
  via: string
  charges: readonly WindowCharge[]
}

/**
 * `most`: maximum of a fuel together with the unused fuel; `least`: a native sweep must transfer
 * more than the unused fuel.
 */
type Leftover =
  /** `place`: key of the fuel itself, by which an earlier one with the same nonce is found. */
  | { address: string; amount: bigint; most: bigint; place: string }
  | { address: string; amount: bigint; least: true }

/** A caller's request as a verdict names it. */
export interface NamedIntent {
  key: string
  content: string
  transaction_id: string
}

/**
 * An order that every stateless rule permits. The conditions on the record are checked again,
 * synchronously with the write.
 */
export interface Verdict extends Subject {
  unsignedHash: string
  /**
   * Name of the step; each transaction of a step excludes all earlier ones, unless `repeatable`.
   */
  step: string
  repeatable: boolean
  intent: NamedIntent | null
  /**
   * Further steps that the transaction belongs to, each for a separate intent. Rule 6 applies to
   * every one of them.
   */
  beside: { step: string; intent: NamedIntent }[]
  /** The callers' requests, to be recorded as seen. */
  seen: SeenRequest[]
  /** API keys that must not be revoked, and whose enrolments must have the required approvals. */
  callers: string[]
  /** Throws if the request is too old for a transaction that is not on record yet. */
  assertAge: () => void
  /** Names under which a void forbids this transaction. */
  voidNames: string[]
  /**
   * Names that are voided together with the step, so that a cancelled intent is never paid again.
   */
  voids: string[]
  charges: readonly Charge[]
  /**
   * Limit that depends on unused fuel at the address, for a fuel of a sweep or for a native sweep.
   */
  leftover: Leftover | null
  /** What the transaction adds to this node's account of fuel at a deposit address. */
  fuelled: { kind: 'fuel' | 'fees'; address: string; amount: bigint } | null
  /** A standing rule, to be recorded with the step if it is not on record yet. */
  rule: StandingRule | null
  /** What people must have approved if a policy requires it; null: no order, or one that needs none. */
  ordered: TankOrder | null
  /** Null: no policy is in force for the transaction. */
  policy: VerdictPolicy | null
  /**
   * Returns what a policy judges: the act of the transaction itself; for gas funding and lent
   * energy, the acts that they are for. Empty if no policy applies to the purpose.
   * @throws Refusal `POLICY_DENIED` if the sub-account has no name on the record, or `BAD_ORDER` if
   *   `policy.to_path` is not the path of a destination
   */
  acts: () => readonly Act[]
  /** The transaction is the act itself, so it is charged to the windows of the policy. */
  isAct: boolean
  /**
   * Indexes of the sub-accounts for which the transaction is made, any of which may be stopped.
   * Empty: only a stop of the whole workspace applies. Null: no stop applies.
   */
  serves: readonly number[] | null
}

declare const GOVERNED: unique symbol
/**
 * A verdict to which the policy in force has been applied, if there is one. Only such a verdict can be
 * checked against the record and admitted, so that no signature is made beside the policy.
 */
export type GovernedVerdict = Verdict & { readonly [GOVERNED]: true }

/** Returns the names of all steps of a verdict. */
export const namesOf = ({ step, beside }: Pick<Verdict, 'step' | 'beside'>): string[] => [
  step,
  ...beside.map((each) => each.step),
]
