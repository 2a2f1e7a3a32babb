import type { KeyState, State } from '../store/state.ts'
import type { ShareName } from './pair-tests.ts'

/**
 * What a node may do with the shares of a refresh. One of the three may lie and may lead; the two
 * others must at every moment have shares of one run in common, or their key is lost. Each step
 * below is durable before anything is answered:
 *
 * - prepared: the new share is on disk and all three have certified it. A later run replaces it,
 *   as long as it is not switched to.
 * - switched: once the new share was tested with both peers. The old one stays, and is what this
 *   node signs with first.
 * - forgotten: the old share goes once both peers have said, each by itself, that they have
 *   switched to the same run.
 * - abandoned: a node that has not switched promises not to. It may, for nobody forgets the old
 *   share without its word.
 * - reverted: back to the old share, once both peers have abandoned the new one.
 *
 * `refresh-explorer.test.ts` tries every order of these steps.
 */

/** What a node tells of a key: the epoch it has switched to and the run that made it. */
export interface Switched {
  epoch: number
  session: string | null
}

/** @returns why a run that makes the shares of the next epoch may not begin here, or null */
export function refreshRefusal(key: KeyState | undefined, epoch: number): string | null {
  if (key?.epoch !== epoch) return 'The key is at another epoch here'
  return key.previous === null ? null : 'An earlier refresh of this key has not ended here'
}

const isPrepared = (state: State, name: ShareName): boolean => {
  const prepared = state.prepared.get(name.key_id)
  return prepared?.session === name.session && prepared.epoch === name.epoch
}

const isAt = (key: Switched | undefined, name: ShareName): boolean =>
  key?.epoch === name.epoch && key.session === name.session

/**
 * @returns why a node may not switch to prepared shares, or null. Switching again is allowed and
 *   does nothing.
 */
export function switchRefusal(
  state: State,
  name: ShareName,
  peers: readonly number[],
): string | null {
  if (isAt(state.keys.get(name.key_id), name)) return null
  if (!isPrepared(state, name)) return 'That refresh is not prepared here'
  const untested = peers.find((node) => !state.prepared.get(name.key_id)!.tested.has(node))
  return untested === undefined ? null : `The new shares were not tested with node ${untested}`
}

/**
 * @returns why the share before may not be wiped, or null. `told`: by both peers, each asked
 *   directly.
 */
export function forgetRefusal(
  state: State,
  name: ShareName,
  told: readonly Switched[],
): string | null {
  if (!isAt(state.keys.get(name.key_id), name)) return 'This node has not switched'
  return told.every((peer) => isAt(peer, name)) ? null : 'Not every node has switched'
}

/** @returns why a node may not promise never to switch to a run's shares, or null */
export function abandonRefusal(state: State, name: ShareName): string | null {
  return isAt(state.keys.get(name.key_id), name) ? 'This node has already switched' : null
}

/**
 * @returns why a node may not go back to the share before, or null. Both peers have abandoned the
 *   run when this is asked.
 */
export function revertRefusal(state: State, name: ShareName): string | null {
  const key = state.keys.get(name.key_id)
  return isAt(key, name) && key?.previous ? null : 'There is no earlier share to go back to'
}
