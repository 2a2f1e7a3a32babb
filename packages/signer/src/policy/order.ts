import type { DecodedTransaction, Network, UnsignedTransaction } from '@custody/chains'
import { z } from 'zod'
import { sha256hex } from '../canonical.ts'
import { signedRequestSchema } from '../intent/request.ts'
import type { CertifiedKey } from '../keys/keyring.ts'
import { hexText } from '../store/entries/values.ts'
import type { StandingRule } from '../store/state.ts'

const decimalSchema = z.string().regex(/^(0|[1-9][0-9]{0,77})$/)
const indexSchema = z.int().min(0).max(0x7fffffff)
const nameSchema = z.string().min(1).max(128)
export const uuidSchema = z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
/** Of a transaction of 4 MiB: more than any block holds. */
const HEX_LENGTH_MAX = 8 * 1024 * 1024
const hexSchema = hexText.max(HEX_LENGTH_MAX)

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
/** `id`: which forward of the rule this is; chosen by the platform, and good for one payment. */
const forwardSchema = z.strictObject({
  kind: z.literal('forward'),
  id: uuidSchema,
  rule: signedRequestSchema,
  receipts: provenSchema.receipts,
})
/**
 * Of a payment, or of one forward: by the caller's own cancellation, or by the deletion of the
 * rule.
 */
const cancelSchema = z.strictObject({
  kind: z.literal('cancel'),
  of: z.discriminatedUnion('kind', [paySchema, forwardSchema]),
  ...provenSchema,
})
/** `step`: which call of the caller's stake, unstake or release this is. */
const stakeSchema = z.strictObject({
  kind: z.literal('stake'),
  step: z.enum(['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw']),
  ...provenSchema,
})
/**
 * Transfers that one fuel may pay for: as many signed requests come with its order, and each is
 * verified.
 */
const FUEL_PARTS_MAX = 64
/** What the transaction that is fuelled may cost. */
const costSchema = {
  gas: decimalSchema,
  max_fee_per_gas: decimalSchema,
  l1_fee: decimalSchema.optional(),
}
/** `beside`: payments of the same source address that the same fuel pays for. */
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
/** Energy of the tank's stake: to the source address of what it is `for`, or back. */
const lendSchema = z.strictObject({
  kind: z.literal('lend'),
  step: z.enum(['delegate', 'undelegate']),
  for: z.discriminatedUnion('kind', [paySchema, sweepSchema, forwardSchema]),
})
const tankStakeSchema = z.strictObject({ kind: z.literal('tank-stake'), order: nameSchema })
const drainSchema = z.strictObject({ kind: z.literal('drain'), order: nameSchema })

/**
 * `to_path`: the own address that is given the native coin for its tokens' fees; absent: the
 * order's destination is paid.
 */
const recoverSchema = z.strictObject({
  kind: z.literal('recover'),
  order: nameSchema,
  to_path: z.array(indexSchema).length(3).optional(),
})

/** A transaction that is to be signed, as it is carried. */
export const unsignedSchema = z.strictObject({
  network: nameSchema,
  bytes: hexSchema,
  inputs: z
    .array(z.strictObject({ path: z.array(indexSchema).max(8), previous: hexSchema.optional() }))
    .min(1)
    .max(400),
  change: z.strictObject({ output: z.int().min(0), path: z.array(indexSchema).max(8) }).optional(),
})

/** What the platform asks for. Both nodes of a pair judge the whole of it. */
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
  ]),
  unsigned: unsignedSchema,
})
export type Order = z.infer<typeof orderSchema>
export type Purpose = Order['purpose']
export type Pay = z.infer<typeof paySchema>
export type Cancel = z.infer<typeof cancelSchema>
/** A signed request with the receipts that keep it usable. */
export type Signed = Pick<Pay, 'request' | 'receipts'>
export type Sweep = z.infer<typeof sweepSchema>
export type Forward = z.infer<typeof forwardSchema>
export type Stake = z.infer<typeof stakeSchema>
export type Lend = z.infer<typeof lendSchema>
export type Fuel = z.infer<typeof fuelSchema>
/** What one transaction of those that a fuel is for may cost. */
export type FuelPart = Pick<Fuel, 'gas' | 'max_fee_per_gas' | 'l1_fee'>
export type Drain = z.infer<typeof drainSchema>
export type Recover = z.infer<typeof recoverSchema>
export type TankStake = z.infer<typeof tankStakeSchema>

/** The same transaction has the same hash, whatever else came along with it. */
export function hashOfUnsigned(unsigned: UnsignedTransaction): string {
  return sha256hex(
    JSON.stringify([
      unsigned.network,
      unsigned.bytes,
      unsigned.inputs.map((input) => input.path),
      unsigned.change ?? null,
    ]),
  )
}

/** What a rule file knows while it judges: the transaction as this node decoded it. */
export interface Subject {
  order: Order
  network: Network
  key: CertifiedKey
  decoded: DecodedTransaction
}

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
 * What is counted against a limit of 24 hours. `largest`: of one step's transactions only the
 * largest counts, for they exclude each other; `rule`: the limit is a standing rule's own cap.
 */
export interface Charge {
  budget: string
  amount: bigint
  limit: bigint
  largest?: boolean
  rule?: boolean
}

/**
 * `most`: a fuel may bring no more than this together with what is left; `least`: a native sweep
 * moves more than what is left.
 */
type Leftover =
  /** `place`: of the fuel itself, by which an earlier one of the same nonce is known. */
  | { address: string; amount: bigint; most: bigint; place: string }
  | { address: string; amount: bigint; least: true }

/** A caller's request as a verdict names it. */
export interface NamedIntent {
  key: string
  content: string
  transaction_id: string
}

/**
 * An order that every stateless rule allows. What depends on the record is checked again, at once
 * with the write.
 */
export interface Verdict extends Subject {
  unsignedHash: string
  /**
   * Name of the step; each transaction under one step excludes all earlier ones, unless
   * `repeatable`.
   */
  step: string
  repeatable: boolean
  intent: NamedIntent | null
  /**
   * What it is a step of besides, each for an intent of its own: rule 6 holds for every one of
   * them.
   */
  beside: { step: string; intent: NamedIntent }[]
  /** The callers' requests, to be written as seen. */
  seen: SeenRequest[]
  /** API keys that must not be revoked. */
  callers: string[]
  /** Throws when the request is too old for a transaction that is not on record yet. */
  assertAge: () => void
  /** Names under which a void stops this. */
  voidNames: string[]
  /** Names that are voided at once with the step: a cancelled intent is never paid again. */
  voids: string[]
  charges: Charge[]
  /** Fuel for a sweep, or a native sweep: what is left of earlier fuel at this address counts. */
  leftover: Leftover | null
  /** What it adds to this node's account of fuel at a deposit address. */
  fuelled: { kind: 'fuel' | 'fees'; address: string; amount: bigint } | null
  /** A standing rule, to be written down with the step where it is not on record yet. */
  rule: StandingRule | null
}

/** Of all steps that a verdict is of. */
export const namesOf = ({ step, beside }: Pick<Verdict, 'step' | 'beside'>): string[] => [
  step,
  ...beside.map((each) => each.step),
]
