import type { KeyState, State } from '../store/state.ts'
import type { ShareName } from './pair-tests.ts'

/**
 * Rules for what a node may do with the shares of a refresh. One of the three nodes may lie and may
 * lead the refresh; the two others must at every moment both have shares of the same run, or their
 * key is lost. Each step below is durable before a response is sent:
 *
 * - prepared: the new share is on disk and all three nodes have certified it. A later run replaces
 *   it until the node has switched to it.
 * - switched: the new share was tested with both peers. The old share is kept, and this node signs
 *   with it first.
 * - forgotten: the old share is deleted after each peer has reported directly that it has switched
 *   to the same run.
 * - abandoned: a node that has not switched promises not to. This is safe, because no node deletes
 *   its old share without this node's report.
 * - reverted: the node uses the old share again, after both peers have abandoned the new one.
 *
 * `refresh-explorer.test.ts` tries every order of these steps.
 */

/**
 * A node's report about a key: the epoch that it has switched to, and the run that generated it.
 */
export interface Switched {
  epoch: number
  session: string | null
}

/** Returns why a run that generates the shares of the next epoch may not start here, or null. */
export function refreshRefusal(key: KeyState | undefined, epoch: number): string | null {
  if (key?.epoch !== epoch) return 'The key has another epoch at this node'
  return key.previous === null ? null : 'An earlier refresh of this key has not ended at this node'
}

const isPrepared = (state: State, name: ShareName): boolean => {
  const prepared = state.prepared.get(name.key_id)
  return prepared?.session === name.session && prepared.epoch === name.epoch
}

const isAt = (key: Switched | undefined, name: ShareName): boolean =>
  key?.epoch === name.epoch && key.session === name.session

/**
 * Returns why a node may not switch to prepared shares, or null. Switching again is allowed and
 * does nothing.
 */
export function switchRefusal(
  state: State,
  name: ShareName,
  peers: readonly number[],
): string | null {
  if (isAt(state.keys.get(name.key_id), name)) return null
  if (!isPrepared(state, name)) return 'This refresh is not prepared at this node'
  const untested = peers.find((node) => !state.prepared.get(name.key_id)!.tested.has(node))
  return untested === undefined ? null : `The new shares were not tested with node ${untested}`
}

/**
 * Returns why the previous share may not be deleted, or null. `told`: the reports of both peers,
 * each queried directly.
 */
export function forgetRefusal(
  state: State,
  name: ShareName,
  results: readonly Switched[],
): string | null {
  if (!isAt(state.keys.get(name.key_id), name)) return 'This node has not switched to the new share'
  return results.every((peer) => isAt(peer, name))
    ? null
    : 'Not every node has switched to the new shares'
}

/** Returns why a node may not promise never to switch to a run's shares, or null. */
export function abandonRefusal(state: State, name: ShareName): string | null {
  return isAt(state.keys.get(name.key_id), name)
    ? 'This node has already switched to the new share'
    : null
}

/**
 * Returns why a node may not return to the previous share, or null. Called after both peers have
 * abandoned the run.
 */
export function revertRefusal(state: State, name: ShareName): string | null {
  const key = state.keys.get(name.key_id)
  return isAt(key, name) && key?.previous ? null : 'This node has no earlier share to return to'
}
