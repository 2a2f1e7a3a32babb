import { Refusal } from '../errors.ts'
import type { State } from '../store/state.ts'
import type { Verdict } from './order.ts'

/**
 * Rule 11: unused fuel at a deposit address belongs to the tank. A node knows what it has signed:
 * fuel to the address, and the maximum cost of the sweeps from it. The next fuel may only add what
 * the unused fuel does not cover; a fuel that replaces an earlier one with the same nonce is
 * compared with the others. A sweep of the native coin that could be unused fuel only is rejected.
 * Returns why unused fuel forbids a transaction; null: it does not.
 */
export function leftoverRefusal(
  state: State,
  { leftover, network }: Pick<Verdict, 'leftover' | 'network'>,
): string | null {
  if (!leftover) return null
  const left = state.fuelled.leftoverAt(
    network.code,
    leftover.address,
    'most' in leftover ? leftover.place : null,
  )
  if (left === 0n) return null
  if ('most' in leftover) {
    return leftover.amount + left > leftover.most
      ? `The fuel ${leftover.amount} and the ${left} of unused fuel at the address exceed the allowed ${leftover.most}`
      : null
  }
  return leftover.amount <= left
    ? `The sweep of ${leftover.amount} could move the ${left} of unused fuel at the address, which belong to the gas tank`
    : null
}

export function assertLeftover(state: State, verdict: Verdict): void {
  const refusal = leftoverRefusal(state, verdict)
  if (refusal !== null)
    throw new Refusal(
      verdict.leftover && 'most' in verdict.leftover ? 'FUEL_TOO_LARGE' : 'SWEEP_MISMATCH',
      refusal,
    )
}
