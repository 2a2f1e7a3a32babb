import { addressAt, OMNIBUS_INDEX, type DecodedTransaction } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Subject, Sweep } from './order.ts'

/**
 * Rule 12: from a deposit address only to the omnibus address of the same sub-account. A sweep of
 * the native coin pays its own fee, and transfers at least its maximum cost, because otherwise a
 * platform could destroy deposits by sweeping tiny amounts.
 */
export function assertSweeps(subject: Subject, sweep: Sweep): asserts subject is Covered {
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
  const [payment] = decoded.payments as [DecodedTransaction['payments'][number]]
  if (decoded.asset === network.native_asset && payment.amount < decoded.fee_max) {
    throw new Refusal(
      'SWEEP_MISMATCH',
      `The sweep moves ${payment.amount}, less than its maximum fee of ${decoded.fee_max}`,
    )
  }
}
