import { addressAt, isBeyondWorth, OMNIBUS_INDEX, type DecodedTransaction } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { Context } from './context.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Subject, Sweep } from './order.ts'

/**
 * Rule 12: from a deposit address only to the omnibus address of the same sub-account. A sweep must move at
 * least its maximum fee; a token's value is the highest that the registry considers possible. Otherwise a
 * platform could burn the network's coin by sweeping tiny amounts.
 */
export function assertSweeps(
  { registry }: Pick<Context, 'registry'>,
  subject: Subject,
  sweep: Sweep,
): asserts subject is Covered {
  const { decoded, network, key } = subject
  assertCovered(subject, {
    payer: sweep.sub_account,
    does: {
      asset: sweep.asset,
      address: addressAt(network, key, [sweep.sub_account, network.chain_index, OMNIBUS_INDEX]),
      payee: "the sub-account's omnibus address",
      tag: null,
      amount: null,
    },
  })
  const [{ amount }] = decoded.payments as [DecodedTransaction['payments'][number]]
  const { fee_max: fee } = decoded
  if (isBeyondWorth(registry, registry.asset(decoded.asset)!, amount, fee))
    throw new Refusal(
      'SWEEP_MISMATCH',
      `The sweep moves ${amount} ${decoded.asset}, which is worth less than its maximum fee of ${fee} ${network.native_asset}, both in smallest units`,
    )
}
