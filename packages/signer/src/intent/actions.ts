import { Refusal } from '../errors.ts'
import type { Proven } from './request.ts'

/** What a signed request may authorise. */
export type Action = { name: 'pay' } | { name: 'speed-up' | 'cancel'; /** The transfer's public id. */ transaction_id: string }

const UUID = '([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})'
const AMEND = new RegExp(`^/dac/v1/transaction/${UUID}/(speed-up|cancel)$`)

/** Rule 2: which signed request means what. Exact: no prefix, no query, no other method. */
export function actionOf({ request, enrolment }: Proven): Action {
  const action = request.method === 'POST' ? actionAt(request.uri) : null
  if (!action) throw new Refusal('ACTION_NOT_ALLOWED', `${request.method} ${request.uri.slice(0, 100)} authorises nothing that this node signs`)
  if (enrolment.role !== 'full') throw new Refusal('READ_ONLY', 'The API key is read-only')
  return action
}

function actionAt(uri: string): Action | null {
  if (uri === '/dac/v1/transaction') return { name: 'pay' }
  const [, id, name] = AMEND.exec(uri) ?? []
  return id === undefined ? null : { name: name as 'speed-up' | 'cancel', transaction_id: id }
}
