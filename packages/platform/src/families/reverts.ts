import { fail, wait, type Fail, type Wait } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'

/** How often a transfer that would revert is looked at again before it fails. */
const ATTEMPTS_MAX = 8
const RETRY_MS = 3000

/** Waits where the chain would refuse a transfer now, since the next blocks may change that; fails after too many looks. */
export const wouldRevert = (row: TransactionRow, reason: string): Wait | Fail =>
  row.attempts < ATTEMPTS_MAX ? wait(reason, RETRY_MS) : fail(`the chain would refuse this transfer: ${reason}`)
