import { Shape, type Tone } from './icons.tsx'

/** Tone and label of each state. A state that is not listed is displayed by its name. */
const STATES: Record<string, readonly [Tone, string]> = {
  // Transactions.
  CREATED: ['info', 'Created'],
  QUEUED: ['info', 'Queued'],
  FUELING: ['info', 'Fuelling'],
  SIGNING: ['info', 'Signing'],
  SIGNED: ['info', 'Signed'],
  SCREENING: ['info', 'Screening'],
  BROADCASTING: ['info', 'Broadcasting'],
  CONFIRMING: ['info', 'Confirming'],
  REPLACING: ['info', 'Replacing'],
  VOIDING: ['info', 'Voiding'],
  CONFIRMED: ['ok', 'Confirmed'],
  CREDITED: ['ok', 'Credited'],
  SWEPT: ['ok', 'Swept'],
  FAILED: ['bad', 'Failed'],
  CANCELLED: ['neutral', 'Cancelled'],
  REVERTED: ['bad', 'Reverted'],
  REORGED: ['bad', 'Reorganised away'],
  AML_HELD: ['frozen', 'Held by screening'],
  APPROVAL: ['warn', 'Waits for approvals'],
  FROZEN: ['frozen', 'Frozen'],
  SUSPENSE: ['warn', 'In suspense'],
  PARTIAL: ['warn', 'Partly done'],
  pending: ['info', 'Pending'],
  confirmed: ['ok', 'Confirmed'],
  failed: ['bad', 'Failed'],
  // Orders and transfers at exchanges.
  open: ['info', 'Open'],
  partially_filled: ['info', 'Partly filled'],
  filled: ['ok', 'Filled'],
  cancelled: ['neutral', 'Cancelled'],
  rejected: ['bad', 'Rejected'],
  unknown: ['warn', 'Unknown'],
  completed: ['ok', 'Completed'],
  // Approvals.
  approved: ['ok', 'Approved'],
  ended: ['neutral', 'Ended'],
  // Policy changes.
  in_force: ['ok', 'In force'],
  vetoed: ['bad', 'Vetoed'],
  // Rules, accounts, tanks.
  active: ['ok', 'Active'],
  inactive: ['neutral', 'Inactive'],
  paused: ['warn', 'Paused'],
  awaiting_approval: ['warn', 'Awaiting approval'],
  expired: ['neutral', 'Expired'],
  deleting: ['info', 'Deleting'],
  deleted: ['neutral', 'Deleted'],
  ok: ['ok', 'OK'],
  low: ['warn', 'Low'],
  empty: ['bad', 'Empty'],
  failing: ['bad', 'Failing'],
  disabled: ['neutral', 'Disabled'],
  delivered: ['ok', 'Delivered'],
  enrolled: ['ok', 'Enrolled'],
  revoked: ['neutral', 'Revoked'],
  // Invoices.
  Pending: ['info', 'Pending'],
  Processing: ['info', 'Processing'],
  Paid: ['ok', 'Paid'],
  Expired: ['neutral', 'Expired'],
  Invalid: ['bad', 'Invalid'],
  seen: ['info', 'Seen'],
  detected: ['info', 'Detected'],
  held: ['frozen', 'Held'],
  reverted: ['bad', 'Reverted'],
  dropped: ['neutral', 'Dropped'],
  late: ['warn', 'Late'],
  partial: ['warn', 'Partly paid'],
  over: ['warn', 'Overpaid'],
  // Health.
  reachable: ['ok', 'Reachable'],
  unreachable: ['bad', 'Unreachable'],
  warn: ['warn', 'Warning'],
  error: ['bad', 'Error'],
  info: ['info', 'Note'],
  done: ['ok', 'Done'],
  refused: ['bad', 'Refused'],
  passed: ['ok', 'Passed'],
}

/**
 * A status with shape, word and colour.
 * @param word replaces the state's label
 */
export function Status({ of, word, tone }: { of: string; word?: string; tone?: Tone }) {
  const [itsTone, itsWord] = STATES[of] ?? ['neutral', of]
  return (
    <span class={`status tone-${tone ?? itsTone}`}>
      <Shape tone={tone ?? itsTone} />
      <span>{word ?? itsWord}</span>
    </span>
  )
}

/** Returns the label of a state. */
export const wordOf = (state: string): string => STATES[state]?.[1] ?? state

/** Status of a transaction: its current step while it is pending, otherwise its result. */
export function TransactionStatus({ status, sub }: { status: string; sub: string }) {
  return <Status of={STATES[sub] === undefined ? status : sub} />
}

/** Returns the tone of a state. */
export const toneOf = (state: string): Tone => STATES[state]?.[0] ?? 'neutral'
