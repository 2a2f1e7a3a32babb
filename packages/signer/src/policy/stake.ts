import { Refusal } from '../errors.ts'
import type { StakeCall, StakeIntent } from '../intent/stake.ts'
import { assertFeeCap } from './cap.ts'
import type { Stake, Subject } from './order.ts'

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
 */
export function assertStakes(
  subject: Subject,
  want: StakeIntent,
  step: Stake['step'],
  own: string,
): void {
  const { decoded } = subject
  if (!STEPS[want.action][want.address === own ? 'own' : 'other'].includes(step)) {
    throw new Refusal('SHAPE', `The signed request is not for a ${step}`)
  }
  const { action } = decoded
  if (!action || decoded.payments.length > 0)
    throw new Refusal('SHAPE', 'The transaction must stake, and must not make a payment')
  if (action.kind !== step)
    throw new Refusal('SHAPE', `The transaction is a ${action.kind}, but the step is a ${step}`)
  if (action.resource !== want.resource)
    throw new Refusal(
      'RESOURCE_MISMATCH',
      'The resource of the transaction differs from the approved resource',
    )
  if (action.amount !== want.amount)
    throw new Refusal(
      'AMOUNT_MISMATCH',
      'The amount of the transaction differs from the approved amount',
    )
  if (action.receiver !== (step === 'delegate' || step === 'undelegate' ? want.address : null)) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      'The transaction delegates to, or reclaims from, another address',
    )
  }
  assertFeeCap(subject)
}
