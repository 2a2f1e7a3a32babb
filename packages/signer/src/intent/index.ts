import type { Registry } from '@custody/chains'
import { actionOf } from './actions.ts'
import { amendIntent, type AmendIntent } from './amend.ts'
import { consolidateIntent, type ConsolidateIntent } from './consolidate.ts'
import {
  endForwardIntent,
  forwardIntent,
  type EndForwardIntent,
  type ForwardIntent,
} from './forward.ts'
import { payIntent, type PayIntent } from './pay.ts'
import { stakeIntent, type StakeIntent } from './stake.ts'
import type { Proven } from './request.ts'

/** The meaning of a signed request, of any kind. */
export type Intent =
  | ({ action: 'pay' } & PayIntent)
  | AmendIntent
  | ForwardIntent
  | EndForwardIntent
  | StakeIntent
  | ConsolidateIntent

/**
 * Returns the meaning of a signed request.
 * @throws Refusal if it is nothing that a node signs
 */
export function intentOf(registry: Registry, proven: Proven): Intent {
  const action = actionOf(proven)
  switch (action.name) {
    case 'pay':
      return { action: 'pay', ...payIntent(registry, proven) }
    case 'forward':
      return forwardIntent(registry, proven)
    case 'end-forward':
      return endForwardIntent(proven, action)
    case 'stake':
    case 'unstake':
    case 'release':
      return stakeIntent(registry, proven, action)
    case 'consolidate':
      return consolidateIntent(registry, proven, action)
    default:
      return amendIntent(proven, action)
  }
}
