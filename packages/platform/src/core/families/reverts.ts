import { fail, wait, type Fail, type Wait } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'

/** Number of attempts after which a transfer that would revert fails. */
const ATTEMPTS_MAX = 8
const RETRY_MS = 3000
const WOULD_REFUSE = 'the chain would reject this transfer'

/**
 * Returns a wait if the chain would currently refuse a transfer, because the next blocks may change
 * that, and a failure after too many attempts. The previous attempt must have had the same result:
 * attempts during an outage count too, and one response of a lagging node proves nothing.
 */
export const wouldRevert = (row: TransactionRow, reason: string): Wait | Fail => {
  const isSeenAgain =
    row.attempts >= ATTEMPTS_MAX && row.last_error?.startsWith(WOULD_REFUSE) === true
  return isSeenAgain
    ? fail(`${WOULD_REFUSE}: ${reason}`)
    : wait('CHAIN_REFUSAL', `${WOULD_REFUSE} now: ${reason}`, RETRY_MS)
}
