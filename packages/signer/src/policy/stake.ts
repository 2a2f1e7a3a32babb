import { Refusal } from '../errors.ts'
import type { StakeCall, StakeIntent } from '../intent/stake.ts'
import { assertFeeCap } from './cap.ts'
import type { Stake, Subject } from './order.ts'

/**
 * The chain transactions that an intent may take, in their order: more where the resource is
 * another address's.
 */
const STEPS: Record<
  StakeIntent['action'],
  { own: readonly StakeCall['kind'][]; other: readonly StakeCall['kind'][] }
> = {
  stake: { own: ['freeze'], other: ['freeze', 'delegate'] },
  unstake: { own: ['unfreeze'], other: ['undelegate', 'unfreeze'] },
  // The chain withdraws all that has matured on the account, whoever had its resource.
  release: { own: ['withdraw'], other: ['withdraw'] },
}

/**
 * Rules 6 and 7 of staking: each step of the caller's intent exactly, with its resource, amount and
 * receiver, and nothing paid.
 */
export function assertStakes(
  subject: Subject,
  want: StakeIntent,
  step: Stake['step'],
  own: string,
): void {
  const { decoded } = subject
  if (!STEPS[want.action][want.address === own ? 'own' : 'other'].includes(step)) {
    throw new Refusal('SHAPE', `The request does not request a ${step}`)
  }
  const { action } = decoded
  if (!action || decoded.payments.length > 0)
    throw new Refusal('SHAPE', 'The transaction must stake, and must not make a payment')
  if (action.kind !== step)
    throw new Refusal('SHAPE', `The transaction is a ${action.kind}, but the step is a ${step}`)
  if (action.resource !== want.resource)
    throw new Refusal('RESOURCE_MISMATCH', 'The transaction has another resource')
  if (action.amount !== want.amount)
    throw new Refusal('AMOUNT_MISMATCH', 'The transaction has another amount')
  if (action.receiver !== (step === 'delegate' || step === 'undelegate' ? want.address : null)) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      'The transaction delegates to, or reclaims from, another address',
    )
  }
  assertFeeCap(subject)
}
