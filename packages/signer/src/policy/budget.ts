import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import { DAY_S } from './age.ts'
import type { Subject, Verdict } from './order.ts'

/** Rules 11 and 12: what fuel and sweeps of one workspace cost on one network within 24 hours. */
export function charge({ order, network }: Subject, amount: bigint, feeCaps: number): Verdict['charge'] {
  return { budget: State.budgetKey(order.workspace, network.code), amount, limit: BigInt(network.fee_cap) * BigInt(feeCaps) }
}

export function assertBudget(state: State, verdict: Verdict, clockMs: number): void {
  if (!verdict.charge) return
  const { budget, amount, limit, largest } = verdict.charge
  if (largest) return assertForwardCap(state, verdict.step, verdict.charge, clockMs)
  const spent = state.spentSince(budget, clockMs - DAY_S * 1000)
  if (spent + amount > limit) throw new Refusal('BUDGET', `The budget of 24 hours is used up: ${spent} of ${limit}`, { spent: spent.toString(), limit: limit.toString() })
}

/** Rule 13: what one rule moves within 24 hours. */
function assertForwardCap(state: State, step: string, { budget, amount, limit }: NonNullable<Verdict['charge']>, clockMs: number): void {
  const steps = state.largestSince(budget, clockMs - DAY_S * 1000)
  const before = steps.get(step) ?? 0n
  steps.set(step, amount > before ? amount : before)
  const sum = [...steps.values()].reduce((all, each) => all + each, 0n)
  if (sum > limit) throw new Refusal('FORWARD_CAP', `The rule's daily cap allows ${limit}; with this forward it would be ${sum}`, { moved: (sum - steps.get(step)!).toString(), limit: limit.toString() })
}
