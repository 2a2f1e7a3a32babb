import { exclusive, type DecodedTransaction, type Registry } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { Body } from '../store/entries/index.ts'
import type { StepBody, StepEntry } from '../store/state.ts'
import type { Verdict } from './order.ts'

/** Rule 6: a further transaction of a step must exclude every earlier one that entered round 1. */
export function assertExclusive(
  registry: Registry,
  earlier: readonly StepEntry[],
  decodedOf: (entry: StepEntry) => DecodedTransaction,
  recordedOf: (entry: StepEntry) => Record<string, unknown>,
  verdict: Verdict,
): void {
  if (verdict.repeatable) return
  for (const entry of earlier) {
    if (entry.unsigned_hash === verdict.unsignedHash) continue
    if (!exclusive(registry, decodedOf(entry), verdict.decoded)) {
      throw new Refusal(
        'NOT_EXCLUSIVE',
        'Another transaction of this step was signed, and both could be mined',
        {
          hash: entry.signed?.hash ?? null,
          recorded: recordedOf(entry),
        },
      )
    }
  }
}

const wide = (value: bigint | null): string | null => (value === null ? null : value.toString())
const narrow = (value: string | null): bigint | null => (value === null ? null : BigInt(value))

/** Returns a decoded transaction in the form in which it is recorded: amounts as decimal text. */
export function encodeDecoded(decoded: DecodedTransaction): Body<'step'>['decoded'] {
  return {
    ...decoded,
    payments: decoded.payments.map((payment) => ({
      ...payment,
      amount: payment.amount.toString(),
    })),
    change: decoded.change && { ...decoded.change, amount: decoded.change.amount.toString() },
    fee_max: decoded.fee_max.toString(),
    action: decoded.action && { ...decoded.action, amount: decoded.action.amount.toString() },
    nonce: wide(decoded.nonce),
    gas_limit: wide(decoded.gas_limit),
    max_fee_per_gas: wide(decoded.max_fee_per_gas),
  }
}

export function decodeDecoded(value: StepBody['decoded']): DecodedTransaction {
  return {
    ...value,
    payments: value.payments.map((payment) => ({ ...payment, amount: BigInt(payment.amount) })),
    change: value.change && { ...value.change, amount: BigInt(value.change.amount) },
    fee_max: BigInt(value.fee_max),
    ...(value.action ? { action: { ...value.action, amount: BigInt(value.action.amount) } } : {}),
    nonce: narrow(value.nonce),
    gas_limit: narrow(value.gas_limit),
    max_fee_per_gas: narrow(value.max_fee_per_gas),
  } as DecodedTransaction
}
