import { fail, wait, type Fail, type Wait } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'

/** How often a transfer that would revert is looked at again before it fails. */
const ATTEMPTS_MAX = 8
const RETRY_MS = 3000
const WOULD_REFUSE = 'the chain would reject this transfer'

/**
 * Waits where the chain would refuse a transfer now, since the next blocks may change that; fails
 * after too many looks. The look before must have seen the same: after an outage, whose looks count
 * as well, one answer of a node that lags behind proves nothing.
 */
export const wouldRevert = (row: TransactionRow, reason: string): Wait | Fail => {
  const isSeenAgain =
    row.attempts >= ATTEMPTS_MAX && row.last_error?.startsWith(WOULD_REFUSE) === true
  return isSeenAgain
    ? fail(`${WOULD_REFUSE}: ${reason}`)
    : wait('CHAIN_REFUSAL', `${WOULD_REFUSE} now: ${reason}`, RETRY_MS)
}
