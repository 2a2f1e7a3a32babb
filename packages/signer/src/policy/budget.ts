import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import { DAY_S } from './age.ts'
import type { Charge, Subject, Verdict } from './order.ts'

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
): Charge[] {
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
 * Checks a charge against its budget.
 * @param ahead charges that are recorded together with and before this one; they are plain sums
 */
export function assertBudget(
  state: State,
  verdict: Verdict,
  clockMs: number,
  ahead: readonly Charge[] = [],
): void {
  for (const charge of verdict.charges) assertCharge(state, verdict.step, charge, clockMs, ahead)
}

function assertCharge(
  state: State,
  step: string,
  { budget, amount, limit, largest, rule }: Charge,
  clockMs: number,
  ahead: readonly Charge[],
): void {
  const since = clockMs - DAY_S * 1000
  const before = ahead
    .filter((charge) => charge.budget === budget)
    .reduce((sum, charge) => sum + charge.amount, 0n)
  const spent = largest
    ? spentWithout(state, budget, since, step, amount)
    : spentWith(state.spending.since(budget, since) + before, amount)
  if (spent.sum <= limit) return
  const detail = { spent: spent.before.toString(), limit: limit.toString() }
  if (rule) {
    throw new Refusal(
      'FORWARD_CAP',
      `The rule's daily cap allows ${limit}; with this forward it would be ${spent.sum}`,
      {
        moved: detail.spent,
        limit: detail.limit,
      },
    )
  }
  throw new Refusal(
    'BUDGET',
    `The budget of 24 hours is used up: ${spent.before} of ${limit}`,
    detail,
  )
}

const spentWith = (before: bigint, amount: bigint): { before: bigint; sum: bigint } => ({
  before,
  sum: before + amount,
})

/**
 * Returns `before`, the sum of the largest charge of each other step, and `sum`, which also includes
 * the largest charge of this step.
 */
function spentWithout(
  state: State,
  budget: string,
  since: number,
  step: string,
  amount: bigint,
): { before: bigint; sum: bigint } {
  const steps = state.spending.largestSince(budget, since)
  const mine = steps.get(step) ?? 0n
  steps.delete(step)
  const before = [...steps.values()].reduce((all, each) => all + each, 0n)
  return spentWith(before, amount > mine ? amount : mine)
}
