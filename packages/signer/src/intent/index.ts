import type { Registry } from '@custody/chains'
import { actionOf } from './actions.ts'
import { amendIntent, type AmendIntent } from './amend.ts'
import { payIntent, type PayIntent } from './pay.ts'
import type { Proven } from './request.ts'

/** What a signed request means, whichever it is. */
export type Intent = ({ action: 'pay' } & PayIntent) | AmendIntent

/** @throws Refusal where it means nothing that a node signs */
export function intentOf(registry: Registry, proven: Proven): Intent {
  const action = actionOf(proven)
  return action.name === 'pay' ? { action: 'pay', ...payIntent(registry, proven) } : amendIntent(proven, action)
}
