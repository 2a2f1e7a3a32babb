import { traitsOf } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import type { Subject } from './order.ts'

/** Returns the account whose nonces a transaction uses, as named in the record. */
export function accountOf({ decoded }: Subject): string | null {
  return decoded.nonce === null ? null : State.accountKey(decoded.network, decoded.from[0]!)
}

/**
 * Returns whether a restored node knows no nonce of an account and its peers report none: all three
 * nodes may have lost their records, so the first signed nonce is accepted. A node that was never
 * restored uses its own record.
 */
export function isUnheardOf(state: State, subject: Subject): boolean {
  const account = accountOf(subject)
  return (
    account !== null &&
    subject.decoded.nonce !== 0n &&
    state.generation > 0 &&
    !state.nonces.has(account)
  )
}

/**
 * Rule 10: returns whether the nonce is neither the account's next one nor one that was used
 * before. If the chain defines the first nonce of an account, any first nonce is accepted.
 * @param ahead the nonce that is recorded together with and before this one; null: none
 */
export function isNonceGap(state: State, subject: Subject, ahead: bigint | null = null): boolean {
  const account = accountOf(subject)
  if (account === null) return false
  // A lost record has no nonces; a nonce that leaves a gap only delays the transaction.
  if (state.recovering) return false
  const recorded = state.nonces.get(account)
  const highest = ahead !== null && ahead > (recorded ?? -1n) ? ahead : recorded
  if (
    highest === undefined &&
    (traitsOf(subject.network).firstNonce === 'chain' || state.generation > 0)
  )
    return false
  return subject.decoded.nonce! > (highest ?? -1n) + 1n
}

export function assertNonce(state: State, subject: Subject, ahead: bigint | null = null): void {
  if (isNonceGap(state, subject, ahead)) {
    throw new Refusal(
      'NONCE_GAP',
      `The nonce ${subject.decoded.nonce} is more than one above the highest recorded nonce`,
      {
        highest: state.nonces.get(accountOf(subject)!)?.toString() ?? null,
      },
    )
  }
}
