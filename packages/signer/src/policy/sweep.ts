import { addressAt, OMNIBUS_INDEX } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { assertFeeCap } from './cap.ts'
import type { Subject, Sweep } from './order.ts'

/**
 * Rule 12: from a deposit address only to the omnibus address of the same sub-account. A sweep of
 * the native coin pays its own fee, and transfers at least its maximum cost, because otherwise a
 * platform could destroy deposits by sweeping tiny amounts.
 */
export function assertSweeps(subject: Subject, sweep: Sweep): void {
  const { decoded, network, key } = subject
  if (decoded.asset !== sweep.asset) {
    throw new Refusal(
      'ASSET_MISMATCH',
      `The transaction moves ${decoded.asset}, but the sweep is of ${sweep.asset}`,
    )
  }
  const [payment, more] = decoded.payments
  if (!payment || more) throw new Refusal('SHAPE', 'The transaction must make exactly one payment')
  if (
    payment.address !==
    addressAt(network, key, [sweep.sub_account, network.chain_index, OMNIBUS_INDEX])
  ) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      "A sweep must go to the sub-account's omnibus address",
    )
  }
  if (payment.tag !== null) throw new Refusal('TAG_MISMATCH', 'A sweep must have no tag')
  assertFeeCap(subject)
  if (decoded.asset === network.native_asset && payment.amount < decoded.fee_max) {
    throw new Refusal(
      'SWEEP_MISMATCH',
      `The sweep moves ${payment.amount}, less than its maximum fee of ${decoded.fee_max}`,
    )
  }
}
