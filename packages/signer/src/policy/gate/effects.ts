import type { StakeCall } from '../../intent/stake.ts'
import { Refusal } from '../../errors.ts'
import { assertFeeCap } from './cap.ts'
import type { Covered, Subject } from '../order.ts'

/** A payment that an authority permits. */
interface PaymentCover {
  asset: string
  /** Destination in canonical form. */
  address: string
  /** What the destination is, for the message of a refusal. */
  payee: string
  tag: string | null
  /** In the smallest unit; null: a charge limits it, or it stays in the account that pays. */
  amount: bigint | null
}

/** A staking action that an authority permits. It locks coin or lends energy, and makes no payment. */
interface ActionCover extends Pick<StakeCall, 'kind' | 'resource' | 'receiver'> {
  /** In the smallest unit; null: any, because the coin stays in the account. */
  amount: bigint | null
}

/** Everything that an authority permits a transaction to do, apart from its fee. */
export interface Cover {
  /** Index of the only sub-account that pays; null: any, by the orders of two operators. */
  payer: number | null
  does: PaymentCover | ActionCover
}

/**
 * What a transaction does, by its bytes alone. docs/protocol/effects.md has what bytes do not say, for
 * each operation of each family.
 */
interface Effects {
  /** Indexes of the sub-accounts whose addresses pay or receive the change. */
  payers: readonly number[]
  /** Without the change. */
  payments: Subject['decoded']['payments']
  action: StakeCall | null
  /** Largest fee, in the smallest unit of the native coin. */
  fee: bigint
}

export function effectsOf({ order, decoded }: Subject): Effects {
  const { inputs, change } = order.unsigned
  const paths = [...inputs, ...(change ? [change] : [])].map(({ path }) => path[0] as number)
  return {
    payers: [...new Set(paths)],
    payments: decoded.payments,
    action: decoded.action ?? null,
    fee: decoded.fee_max,
  }
}

/**
 * The gate: checks that an authority permits everything that a transaction does, and that its fee is
 * below the network's cap.
 * @throws Refusal
 */
export function assertCovered(subject: Subject, cover: Cover): asserts subject is Covered {
  assertEffects(subject, cover)
  assertFeeCap(subject)
}

/** Rules 7 and 8, without the fee: also for a transaction that was signed before. @throws Refusal */
export function assertEffects(subject: Subject, { payer, does }: Cover): void {
  const effects = effectsOf(subject)
  if (payer !== null && effects.payers.some((each) => each !== payer))
    throw new Refusal('FOREIGN_PATH', 'The transaction spends from another account than the payer')
  if ('payee' in does) assertPayment(subject, effects, does)
  else assertAction(effects, does)
}

function assertPayment(
  { decoded }: Subject,
  { payments, action }: Effects,
  cover: PaymentCover,
): void {
  if (decoded.asset !== cover.asset)
    throw new Refusal(
      'ASSET_MISMATCH',
      `The transaction must move ${cover.asset}, and moves ${decoded.asset}`,
    )
  const [payment, more] = payments
  if (!payment || more || action !== null)
    throw new Refusal('SHAPE', 'The transaction must make exactly one payment')
  if (payment.address !== cover.address)
    throw new Refusal('DESTINATION_MISMATCH', `The transaction must pay ${cover.payee}`)
  if (cover.amount !== null && payment.amount !== cover.amount)
    throw new Refusal(
      'AMOUNT_MISMATCH',
      `The transaction must pay ${cover.amount}, and pays ${payment.amount}`,
    )
  if (payment.tag !== cover.tag)
    throw new Refusal('TAG_MISMATCH', 'The tag of the transaction differs from the approved tag')
}

function assertAction({ payments, action }: Effects, cover: ActionCover): void {
  if (action === null || payments.length > 0)
    throw new Refusal('SHAPE', 'The transaction must stake, and must not make a payment')
  if (action.kind !== cover.kind)
    throw new Refusal('SHAPE', `The transaction must be a ${cover.kind}, and is a ${action.kind}`)
  if (action.resource !== cover.resource)
    throw new Refusal(
      'RESOURCE_MISMATCH',
      'The resource of the transaction differs from the approved resource',
    )
  if (cover.amount !== null && action.amount !== cover.amount)
    throw new Refusal(
      'AMOUNT_MISMATCH',
      'The amount of the transaction differs from the approved amount',
    )
  if (action.receiver !== cover.receiver)
    throw new Refusal(
      'DESTINATION_MISMATCH',
      'The transaction must lend to, or reclaim from, the approved address',
    )
}
