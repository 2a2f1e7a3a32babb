import type { BrowserKey } from './keys.ts'
import type { ApiUser } from './types.ts'

/** State of this browser's key for a sub-account. */
export interface KeyState {
  /** `none`: no pair exists here; `unknown`: not requested yet; `ready`: can sign. */
  state: 'none' | 'unknown' | 'pending' | 'read-only' | 'revoked' | 'ready'
  key: BrowserKey | null
  user: ApiUser | null
}

/** Returns which of a browser's pairs signs for a sub-account; an enrolled one has priority. */
export function judgeKeys(
  keys: readonly BrowserKey[],
  users: readonly ApiUser[],
  {
    workspace,
    subAccount,
    personId,
  }: { workspace: string; subAccount: string; personId: string | null },
): KeyState {
  const order = ['ready', 'pending', 'unknown', 'read-only', 'revoked', 'none']
  const states = keys
    .filter((key) => key.workspace === workspace && key.sub_account === subAccount)
    .map((key): KeyState => {
      // Another person may request an API user with this public key; theirs are ignored.
      const mine = users
        .filter(
          (user) =>
            user.key_fingerprint === key.fingerprint &&
            user.sub_account === subAccount &&
            (user.person === null || user.person.id === personId),
        )
        .sort((a, b) => Number(a.person === null) - Number(b.person === null))
      const user =
        mine.find((each) => each.revoked_at === null && each.enrolment === 'enrolled') ??
        mine.find((each) => each.revoked_at === null) ??
        mine[0] ??
        null
      const state =
        user === null
          ? 'unknown'
          : user.revoked_at !== null
            ? 'revoked'
            : user.enrolment === 'pending'
              ? 'pending'
              : user.role === 'full'
                ? 'ready'
                : 'read-only'
      return { state, key, user }
    })
  return (
    states.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))[0] ?? {
      state: 'none',
      key: null,
      user: null,
    }
  )
}
