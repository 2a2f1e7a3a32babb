import type { Proven } from '../intent/request.ts'
import { canonicalBytes, verifyBytes } from '../canonical.ts'
import type { KeyObject } from 'node:crypto'
import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import type { Receipt } from './order.ts'

/** Rule 3: age of requests. */
export const DAY_S = 86_400
const WEEK_S = 7 * DAY_S
/**
 * A request that was seen at most this number of seconds after `exp` was valid when it was seen.
 */
const TIMELY_S = 60

const RECEIPT_KEYS = ['node', 'api_key', 'nonce', 'intent', 'seen_at'] as const
export const receiptBytes = (receipt: Receipt['receipt']): Buffer =>
  canonicalBytes('receipt', RECEIPT_KEYS, receipt)

export const isTimely = (exp: number, now: number): boolean => now <= exp + TIMELY_S

/** A request whose age is checked, and the data that the check needs. */
interface AgedRequest {
  state: State
  /** Public identity keys of the nodes, by which receipts are verified. */
  identities: ReadonlyMap<number, KeyObject>
  proven: Proven
  /** Hash of the request's meaning; a receipt for another meaning proves nothing. */
  content: string
  receipts: readonly Receipt[]
  /** Unix time in seconds. */
  now: number
}

/**
 * Checks the age of a request.
 * @throws Refusal TOO_OLD
 */
export function assertAge({
  state,
  identities,
  proven,
  content,
  receipts,
  now,
}: AgedRequest): void {
  if (proven.iat * 1000 < state.notBefore) {
    throw new Refusal(
      'TOO_OLD',
      'The request was issued before this node was restored, or before its clock was repaired',
    )
  }
  if (now <= proven.iat + DAY_S) return
  if (now > proven.iat + WEEK_S)
    throw new Refusal('TOO_OLD', 'The request was issued more than 7 days ago')
  const seen = state.seen.get(State.requestKey(proven.enrolment.api_key, proven.nonce))
  if (seen?.timely) return
  if (isVouchedFor(identities, proven, content, receipts)) return
  throw new Refusal(
    'TOO_OLD',
    'The request was issued more than 24 hours ago, and no node received it before it expired',
  )
}

/**
 * Returns whether a node's signed receipt states that it saw the request, with this meaning, before
 * its expiry.
 */
export function isVouchedFor(
  identities: ReadonlyMap<number, KeyObject>,
  proven: Proven,
  content: string,
  receipts: readonly Receipt[],
): boolean {
  return receipts.some(({ receipt, signature }) => {
    const identity = identities.get(receipt.node)
    if (
      !identity ||
      receipt.api_key !== proven.enrolment.api_key ||
      receipt.nonce !== proven.nonce ||
      receipt.intent !== content
    ) {
      return false
    }
    return (
      isTimely(proven.exp, receipt.seen_at) &&
      verifyBytes(identity, receiptBytes(receipt), signature)
    )
  })
}
