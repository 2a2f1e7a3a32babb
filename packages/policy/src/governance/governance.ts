import type { Policy } from '../evaluation/compile.ts'
import { keyName } from '../evaluation/approvals.ts'
import type { KeyRef } from '../statements/quorum.ts'
import type { verifyStatement } from '../statements/verify.ts'
import type { lint } from '../analysis/lint.ts'

/** The next document, whose approvals are complete. */
export interface PendingChange {
  readonly policy: Policy
  /** Unix seconds at which it was first seen complete here, and from which its delay counts. */
  readonly seen_at_s: number
  /** Unix seconds from which it is in force here. */
  readonly acts_at_s: number
  /** Unix seconds that the approvals name. It is earlier than `acts_at_s` if it was seen late here. */
  readonly approved_for_s: number
  /** People who have approved it. */
  readonly approvedBy: readonly string[]
  /**
   * Person who vetoed it although it removes them; null if there is none. It then waits until the
   * operators of two nodes confirm it.
   */
  readonly vetoedBy: string | null
  /** Nodes whose operators have confirmed it. */
  readonly confirmedBy: readonly number[]
}

/** A stop that is in force; `sub_account` null: of the whole workspace. */
export interface Stop {
  readonly hash: string
  readonly sub_account: string | null
  readonly by: string
  /** Unix seconds of the statement. */
  readonly at: number
}

/** A stop that was ended before its own time, because the clock of its signer was ahead. */
export type EndedStop = Pick<Stop, 'hash' | 'sub_account' | 'at'>

/** A change that was pending here until a person vetoed it. */
export interface VetoedChange {
  /** Hash of the document. */
  readonly hash: string
  /** Person who vetoed it. */
  readonly by: string
  /** People who had approved it. */
  readonly approvedBy: readonly string[]
  /** Unix seconds at which the veto was seen here. */
  readonly at_s: number
}

/** A key that counts for nothing until a time in Unix seconds. */
export interface Suspension {
  readonly hash: string
  readonly by: string
  readonly target: KeyRef
  readonly ends_at_s: number
}

/**
 * What a holder of a workspace's policy knows: a value that the functions of this folder replace,
 * never change. Each function checks what it is given and throws `PolicyError`; the state it was
 * given is then still valid.
 */
export interface Governance {
  /** Document in force. */
  readonly policy: Policy
  readonly next: PendingChange | null
  /**
   * People who have vetoed a successor of this document, by its hash. It cannot be proposed again,
   * except if it removes all of them. A veto may arrive before the change.
   */
  readonly vetoed: ReadonlyMap<string, readonly string[]>
  /** Successors of this document that were pending here until they were vetoed, oldest first. */
  readonly vetoedChanges: readonly VetoedChange[]
  /** One for each scope. */
  readonly stops: readonly Stop[]
  /**
   * Time of the latest stop of each scope that was ended; the key is its `sub_account`. Stops up to
   * that time are ended too, so none of them can be shown again. It is never later than now.
   */
  readonly resumedUpTo: ReadonlyMap<string | null, number>
  /** Ended stops whose time has not come yet. Then it becomes that of `resumedUpTo`. */
  readonly endedStops: readonly EndedStop[]
  readonly suspensions: readonly Suspension[]
  /** Public keys (SPKI) that their owners have revoked. No document may contain them any more. */
  readonly revoked: ReadonlySet<string>
}

/**
 * Verifies a statement, and returns its hash. A signer node's function also verifies passkeys.
 * @throws PolicyError
 */
export type Verify = typeof verifyStatement

/** When, and by which function, statements are verified. */
export interface Present {
  /** Unix seconds. */
  readonly now_s: number
  readonly verify?: Verify
  /** Finds the faults of a document whose signatures have been verified; by default `lint`. */
  readonly findFaults?: typeof lint
}

/** Returns whether nothing may be signed for a sub-account. */
export const isStopped = ({ stops }: Governance, subAccount: string): boolean =>
  stops.some(({ sub_account: scope }) => scope === null || scope === subAccount)

/** Returns the suspended keys, as `keyName` names them. */
export const suspendedKeys = ({ suspensions }: Governance): ReadonlySet<string> =>
  new Set(suspensions.map(({ target: { person, key } }) => keyName(person, key)))

/** Returns the suspended and the revoked keys, which count for no approval. */
export function blockedKeys(governance: Governance): ReadonlySet<string> {
  const { policy, revoked } = governance
  const names = new Set(suspendedKeys(governance))
  for (const [person, keys] of policy.people)
    for (const [id, { spki }] of keys) if (revoked.has(spki)) names.add(keyName(person, id))
  return names
}
