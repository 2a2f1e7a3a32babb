import { Refusal } from '../errors.ts'
import type { Proven } from './request.ts'

/** A change of an earlier payment; `transaction_id` is its public ID. */
export interface AmendAction {
  name: 'speed-up' | 'cancel'
  transaction_id: string
}
/** Deletes a standing rule; `rule_id` is the public ID of the request that created it. */
export interface EndForwardAction {
  name: 'end-forward'
  rule_id: string
}
/** A request to stake, unstake or release with Tron's Stake 2.0. */
export interface StakeAction {
  name: 'stake' | 'unstake' | 'release'
}
/** A request to merge coins of a wallet; `wallet_id` is its public ID. */
export interface ConsolidateAction {
  name: 'consolidate'
  wallet_id: string
}

/** Everything that a signed request may authorise. */
export type Action =
  | { name: 'pay' }
  | { name: 'forward' }
  | AmendAction
  | EndForwardAction
  | StakeAction
  | ConsolidateAction

/** Pattern of a UUID. Its hexadecimal digits may be in upper or lower case. */
const UUID = '([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})'
const AMEND = new RegExp(`^/dac/v1/transaction/${UUID}/(speed-up|cancel)$`)
const CONSOLIDATE = new RegExp(`^/dac/v1/wallets/${UUID}/consolidate$`)
const RULE = new RegExp(`^/dac/v1/auto-forwarding/${UUID}$`)

/**
 * A payment that refunds an invoice. Only the platform stores the link to the invoice; for a node
 * it is an ordinary payment.
 */
const REFUND = /^\/dac\/v1\/invoices\/inv_[0-9a-f]{32}\/refund$/

/** Returns whether a signed request refunds an invoice. Its action is a payment. */
export const isRefund = ({ request }: Pick<Proven, 'request'>): boolean =>
  request.method === 'POST' && REFUND.test(request.uri)

const STAKES: Readonly<Record<string, StakeAction['name']>> = {
  '/dav/v1/stake': 'stake',
  '/dav/v1/unstake': 'unstake',
  '/dav/v1/release-unstaked': 'release',
}

/**
 * Rule 2: returns the action of a signed request. The match is exact: no prefix, no query, no other
 * method.
 */
export function actionOf({ request, enrolment }: Proven): Action {
  const action =
    request.method === 'POST'
      ? actionAt(request.uri)
      : request.method === 'DELETE'
        ? endAt(request.uri)
        : null
  if (!action) {
    throw new Refusal(
      'ACTION_NOT_ALLOWED',
      `${request.method} ${request.uri.slice(0, 100)} does not authorise any transaction that this node signs`,
    )
  }
  if (enrolment.role !== 'full')
    throw new Refusal('READ_ONLY', `The API key has the role ${enrolment.role}`)
  return action
}

function actionAt(uri: string): Action | null {
  if (uri === '/dac/v1/transaction' || REFUND.test(uri)) return { name: 'pay' }
  if (uri === '/dac/v1/auto-forwarding') return { name: 'forward' }
  if (Object.hasOwn(STAKES, uri)) return { name: STAKES[uri] as StakeAction['name'] }
  const [, wallet] = CONSOLIDATE.exec(uri) ?? []
  if (wallet !== undefined) return { name: 'consolidate', wallet_id: wallet.toLowerCase() }
  const [, id, name] = AMEND.exec(uri) ?? []
  return id === undefined
    ? null
    : { name: name as 'speed-up' | 'cancel', transaction_id: id.toLowerCase() }
}

function endAt(uri: string): EndForwardAction | null {
  const [, id] = RULE.exec(uri) ?? []
  return id === undefined ? null : { name: 'end-forward', rule_id: id.toLowerCase() }
}
