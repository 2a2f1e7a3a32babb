import { PolicyError, type Governance } from '@custody/policy'
import { Refusal } from '../errors.ts'
import type { Log } from '../log.ts'
import type { NewEntry } from '../store/entries/index.ts'
import type { Store } from '../store/index.ts'
import { applied } from './apply.ts'
import { withEarlierEffect } from './earlier-entries.ts'
import { heldAt, isBehindKnown, knownOf, NOTHING_HELD, type Held, type Known } from './held.ts'
import type { GovernanceEntry, Judged } from './items.ts'
import { judge, type Rules } from './judge.ts'

interface Folded {
  /** Number of entries that were applied. */
  count: number
  held: Held
  /** Unix seconds to which `held` has advanced. */
  reachedS: number
  /** Reason why an entry on record cannot be applied. */
  fault: string | null
}

/**
 * The policies of all workspaces, as this node's record contains them. They are computed from the
 * entries, so a restarted node has exactly what it had before.
 */
export class Policies {
  readonly #store: Store
  readonly #rules: Rules
  readonly #log: Log
  readonly #folded = new Map<string, Folded>()

  constructor({ store, rules, log }: { store: Store; rules: Rules; log: Log }) {
    this.#store = store
    this.#rules = rules
    this.#log = log
  }

  /** Returns whether the record contains anything about a policy of the workspace. */
  isNamed(workspace: string): boolean {
    return this.#store.state.policies.has(workspace)
  }

  /** Workspaces about whose policy the record contains something. */
  get workspaces(): string[] {
    return [...this.#store.state.policies.keys()]
  }

  /** Returns an entry of the record about a policy. */
  entryAt(height: number): GovernanceEntry {
    return this.#store.record.read(height) as GovernanceEntry
  }

  /**
   * Returns what this node holds now.
   * @throws Refusal `RECORD_UNREADABLE` if an entry on record cannot be applied by this version
   */
  held(workspace: string): Held {
    const folded = this.#fold(workspace)
    if (folded.fault !== null)
      throw new Refusal(
        'RECORD_UNREADABLE',
        `The policy of the workspace cannot be read from the record: ${folded.fault}`,
      )
    folded.reachedS = this.#store.seconds()
    folded.held = heldAt(folded.held, folded.reachedS)
    return folded.held
  }

  /**
   * Returns the policy in force, or null if the workspace has none.
   * @throws Refusal as {@link held}; `POLICY_BEHIND` if this node had another one before its
   *   restoration, which is neither the one in force nor an earlier one of the same chain
   */
  current(workspace: string): Governance | null {
    if (!this.isNamed(workspace)) return null
    const held = this.held(workspace)
    const { governance, chain, known } = held
    if (known === null || !isBehindKnown(held)) return governance
    const message =
      chain.length < known.number
        ? `This node does not have the policy ${known.number} of the workspace yet, which it needs by its backup or its peers`
        : `The policy ${known.number} of the workspace at this node differs from the one that it had before its restoration`
    throw new Refusal('POLICY_BEHIND', message)
  }

  /**
   * Returns whether this node can apply the policy that it holds for a workspace, or holds none.
   * @param isTimely whether the policy in force was not replaced elsewhere
   */
  isCurrent(workspace: string, isTimely: (governance: Governance) => boolean): boolean {
    try {
      const governance = this.current(workspace)
      return governance === null || isTimely(governance)
    } catch (error) {
      if (error instanceof Refusal) return false
      throw error
    }
  }

  /**
   * Returns what a backup contains: the policy of each workspace that has one in force. If an entry
   * on record cannot be applied by this version, it is the one before that entry.
   */
  forBackup(): (Known & { workspace: string })[] {
    const now_s = this.#store.seconds()
    return this.workspaces.flatMap((workspace) => {
      const known = knownOf(heldAt(this.#fold(workspace).held, now_s))
      return known === null ? [] : [{ workspace, ...known }]
    })
  }

  /**
   * Judges an entry at the present time, and records it with its effect if it changes something.
   * @returns whether it was recorded
   * @throws PolicyError if it is refused
   */
  record(entry: Judged): boolean {
    const { workspace } = entry.body
    const before = this.held(workspace)
    const judged = judge(before, entry, this.#rules, this.#folded.get(workspace)!.reachedS)
    if (judged === null) return false
    const after = applied(before, judged, this.#rules.registry)
    this.#store.appendAll([judged as NewEntry])
    const folded = this.#folded.get(workspace)!
    folded.held = after
    folded.count = this.#store.state.policies.get(workspace)!.length
    return true
  }

  /** Returns whether an entry would be accepted. Records nothing. */
  isAcceptable(entry: Judged): boolean {
    try {
      const { workspace } = entry.body
      judge(this.held(workspace), entry, this.#rules, this.#folded.get(workspace)!.reachedS)
      return true
    } catch (error) {
      if (error instanceof PolicyError || error instanceof Refusal) return false
      throw error
    }
  }

  #fold(workspace: string): Folded {
    const folded = this.#folded.get(workspace) ?? {
      count: 0,
      held: NOTHING_HELD,
      reachedS: 0,
      fault: null,
    }
    this.#folded.set(workspace, folded)
    const heights = this.#store.state.policies.get(workspace) ?? []
    while (folded.count < heights.length && folded.fault === null) {
      const entry = this.entryAt(heights[folded.count]!)
      try {
        const earlier = withEarlierEffect(folded.held, entry)
        if (earlier.entry) folded.held = applied(folded.held, earlier.entry, this.#rules.registry)
        folded.count++
        if (earlier.note !== null)
          this.#log('alert', 'an entry about a policy that would be refused now was limited', {
            workspace,
            height: entry.height,
            reason: earlier.note,
          })
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        folded.fault = `entry ${entry.height}: ${error.message}`
        this.#log('alert', 'the policy of a workspace cannot be read from the record', {
          workspace,
          height: entry.height,
          reason: error.message,
        })
      }
    }
    return folded
  }
}
