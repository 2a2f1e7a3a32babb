import { Refusal } from '../errors.ts'
import type { Proven } from './request.ts'

/** Rule 2: which signed request means what. Exact: no prefix, no query, no other method. */
const ACTIONS: Record<string, 'pay'> = {
  'POST /dac/v1/transaction': 'pay',
}

export function actionOf({ request, enrolment }: Proven): 'pay' {
  const name = `${request.method} ${request.uri}`
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action) throw new Refusal('ACTION_NOT_ALLOWED', `${request.method} ${request.uri.slice(0, 100)} authorises nothing that this node signs`)
  if (enrolment.role !== 'full') throw new Refusal('READ_ONLY', 'The API key is read-only')
  return action
}
