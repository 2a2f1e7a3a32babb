import { traitsOf } from '@custody/chains'
import { Refusal } from '../errors.ts'
import { State } from '../store/state.ts'
import type { Subject } from './order.ts'

/** The account whose numbers a transaction takes one of, as the record names it. */
export function accountOf({ decoded }: Subject): string | null {
  return decoded.nonce === null ? null : State.accountKey(decoded.network, decoded.from[0]!)
}

/**
 * A restored node that knows no number of an account, and is told none by its peers: all three may
 * have lost their records, and the first that is signed begins anew. A node that was never restored
 * holds its partner to its own record.
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
 * Rule 10: the account's next nonce, or one used before. Where the chain says at which an account
 * begins, its first one is free.
 * @param ahead the nonce that is written down at once before this one; null: none is
 */
export function isNonceGap(state: State, subject: Subject, ahead: bigint | null = null): boolean {
  const account = accountOf(subject)
  if (account === null) return false
  // A record that is gone knows no numbers; a gap would only stand still.
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
