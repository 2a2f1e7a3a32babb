import { Refusal } from '../errors.ts'
import type { StakeCall, StakeIntent } from '../intent/stake.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Stake, Subject } from './order.ts'

/**
 * The transactions that an intent may consist of, in order: there are more if the resource belongs
 * to another address.
 */
const STEPS: Record<
  StakeIntent['action'],
  { own: readonly StakeCall['kind'][]; other: readonly StakeCall['kind'][] }
> = {
  stake: { own: ['freeze'], other: ['freeze', 'delegate'] },
  unstake: { own: ['unfreeze'], other: ['undelegate', 'unfreeze'] },
  // The chain withdraws everything of the account whose waiting period is over, no matter who
  // had its resource.
  release: { own: ['withdraw'], other: ['withdraw'] },
}

/**
 * Rules 6 and 7 for staking: exactly the steps of the caller's intent, with its resource, amount
 * and receiver, and no payment.
 * @param payer index of the caller's sub-account
 */
export function assertStakes(
  subject: Subject,
  want: StakeIntent,
  step: Stake['step'],
  own: string,
  payer: number,
): asserts subject is Covered {
  if (!STEPS[want.action][want.address === own ? 'own' : 'other'].includes(step)) {
    throw new Refusal('SHAPE', `The signed request is not for a ${step}`)
  }
  const { resource, amount } = want
  const receiver = step === 'delegate' || step === 'undelegate' ? want.address : null
  assertCovered(subject, { payer, does: { kind: step, resource, amount, receiver } })
}
