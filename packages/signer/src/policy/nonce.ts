import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import type { Subject } from './order.ts'

/** Families whose accounts start at a sequence that the chain gives them: an account's first one is free. */
const CHAIN_STARTS = new Set(['xrp', 'stellar'])

/** Rule 10: the account's next nonce, or one used before. */
export function accountOf({ decoded }: Subject): string | null {
  return decoded.nonce === null ? null : State.accountKey(decoded.network, decoded.from[0]!)
}

export function isNonceGap(state: State, subject: Subject): boolean {
  const account = accountOf(subject)
  if (account === null) return false
  const highest = state.nonces.get(account)
  if (highest === undefined && CHAIN_STARTS.has(subject.network.family)) return false
  return subject.decoded.nonce! > (highest ?? -1n) + 1n
}

export function assertNonce(state: State, subject: Subject): void {
  if (isNonceGap(state, subject)) {
    throw new Refusal('NONCE_GAP', `The nonce ${subject.decoded.nonce} is more than one beyond the highest on record`, {
      highest: state.nonces.get(accountOf(subject)!)?.toString() ?? null,
    })
  }
}
