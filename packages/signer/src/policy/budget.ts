import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import { Spending, type Charged, type ChargedWindow } from '../store/spending.ts'
import { DAY_S } from './age.ts'
import type { Charge, Subject, Verdict } from './order.ts'

/** Time for which a charge counts, in milliseconds. */
export const WINDOW_MS = DAY_S * 1000

/** Divisor for the part of a workspace's sweep budget that one sub-account may use. */
const SWEEP_SHARE = 4n
/**
 * Divisor of the moved amount: only the part of a native sweep's fee above this fraction is
 * charged.
 */
const FREE_SHARE = 20n

/**
 * Rules 11 and 13: the charge of a caller's transactions on one network within 24 hours. Each
 * sub-account has its own budget, so that one caller's high fee_rate does not use up the budget of
 * others.
 */
export function charge(
  { order, network }: Subject,
  subAccount: number,
  amount: bigint,
  feeCaps: number,
): Charge {
  return {
    budget: State.budgetKey(order.workspace, network.code, String(subAccount)),
    amount,
    limit: BigInt(network.fee_cap) * BigInt(feeCaps),
  }
}

/**
 * Like {@link charge}, for transactions that exclude each other: only the most expensive one is
 * charged.
 */
export const chargeOnce = (
  subject: Subject,
  subAccount: number,
  amount: bigint,
  feeCaps: number,
): Charge => ({
  ...charge(subject, subAccount, amount, feeCaps),
  largest: true,
})

/**
 * Rules 11 and 12: the charges of transactions that no caller has signed, against the workspace's
 * budget for sweeps and the sub-account's part of it.
 */
export function sweepCharges(
  { order, network }: Subject,
  subAccount: number,
  amount: bigint,
  feeCaps: number,
): [Charge, Charge] {
  const limit = BigInt(network.fee_cap) * BigInt(feeCaps)
  return [
    {
      budget: State.budgetKey(order.workspace, network.code, `sweep ${subAccount}`),
      amount,
      limit: limit / SWEEP_SHARE,
    },
    { budget: State.budgetKey(order.workspace, network.code, 'sweep'), amount, limit },
  ]
}

/** Returns the part of a native sweep's fee that is charged, which depends on the moved amount. */
export const beyondShare = (fee: bigint, moved: bigint): bigint =>
  fee > moved / FREE_SHARE ? fee - moved / FREE_SHARE : 0n

/** Returns the cost of a fuel transaction for a tank: its amount and its own fee. */
export const costOfFuel = ({ decoded }: Subject): bigint =>
  decoded.payments[0]!.amount + decoded.fee_max

/**
 * The charges that count besides those on this node's record: those on the partner's record, and
 * those of sessions in progress. The transactions that are being judged are not among them.
 */
export interface OtherCharges {
  /** Returns the charges of a budget. */
  budget(name: string): readonly Charged[]
  /** Charges on the partner's record, which may contain those of `judged`. */
  readonly recorded: Spending
  /** Returns the charges of sessions in progress to a sum of a policy (`windowName`). */
  inProgress(window: string): readonly ChargedWindow[]
  /** The transactions that are being judged. Their charges in `recorded` do not count. */
  readonly judged: readonly JudgedTransaction[]
  /** Returns the highest nonce of an account in sessions in progress; null: none. */
  nonce(account: string): bigint | null
}
/** A transaction that is being judged, by its step and its hash. */
type JudgedTransaction = Pick<ChargedWindow, 'step' | 'transaction'>
export const NO_OTHERS: OtherCharges = {
  budget: () => [],
  recorded: new Spending(),
  inProgress: () => [],
  judged: [],
  nonce: () => null,
}

interface Besides {
  /** Charges that are recorded together with this verdict and before it; they are plain sums. */
  ahead?: readonly Charge[]
  other?: OtherCharges
}

/** Checks the charges of a verdict against their budgets. */
export function assertBudget(
  state: State,
  { step, charges }: Pick<Verdict, 'step' | 'charges'>,
  clockMs: number,
  { ahead = [], other = NO_OTHERS }: Besides = {},
): void {
  for (const charge of charges) {
    const { budget, amount, limit, largest, rule } = charge
    const own = state.spending.since(budget, clockMs - WINDOW_MS)
    const others = other.budget(budget)
    const spent = largest
      ? spentWithout([...own, ...others], step, amount)
      : spentWith(sumOf(ahead.filter((each) => each.budget === budget)), own, others, charge)
    if (spent.sum <= limit) continue
    if (rule) {
      throw new Refusal(
        'FORWARD_CAP',
        `The rule's daily cap allows ${limit}; with this forward it would be ${spent.sum}`,
        { moved: spent.before.toString(), limit: limit.toString() },
      )
    }
    throw new Refusal('BUDGET', `The budget of 24 hours is used up: ${spent.before} of ${limit}`, {
      spent: spent.before.toString(),
      limit: limit.toString(),
    })
  }
}

const sumOf = (list: readonly { amount: bigint }[]): bigint =>
  list.reduce((sum, { amount }) => sum + amount, 0n)

interface Spent {
  before: bigint
  sum: bigint
}

/** Returns `before`, the sum of all charged transactions, and `sum`, which includes this charge. */
function spentWith(
  ahead: bigint,
  own: readonly Charged[],
  others: readonly Charged[],
  { amount, limit }: Charge,
): Spent {
  const most = ahead + sumOf(own) + sumOf(others)
  // Both nodes know most transactions, so this often counts them twice; it is sufficient while
  // little of the budget is used.
  if (others.length === 0 || most + amount <= limit) return { before: most, sum: most + amount }
  const before = ahead + sumOf(largestBy('transaction', [...own, ...others]))
  return { before, sum: before + amount }
}

/**
 * Returns `before`, the sum of the largest charge of each other step, and `sum`, which also includes
 * the largest charge of this step.
 */
function spentWithout(charged: readonly Charged[], step: string, amount: bigint): Spent {
  const mine = charged
    .filter((each) => each.step === step)
    .reduce((most, each) => (each.amount > most ? each.amount : most), 0n)
  const before = sumOf(
    largestBy(
      'step',
      charged.filter((each) => each.step !== step),
    ),
  )
  return { before, sum: before + (amount > mine ? amount : mine) }
}

/** Returns the largest charge of each step or transaction. */
function largestBy(by: 'step' | 'transaction', charged: readonly Charged[]): Charged[] {
  const largest = new Map<string, Charged>()
  for (const each of charged) {
    const existing = largest.get(each[by])
    if (!existing || each.amount > existing.amount) largest.set(each[by], each)
  }
  return [...largest.values()]
}
