import type { Act } from '../act.ts'
import type { Policy } from '../evaluation/compile.ts'
import { evaluate, type Evaluation } from '../evaluation/evaluate.ts'
import { chargesOf } from '../evaluation/prepare.ts'
import type { Use } from '../evaluation/windows.ts'

/** An act of the past. */
export interface PastAct {
  readonly act: Act
  /** Unix seconds at which it was admitted. */
  readonly at_s: number
}

/** Which acts of the past another document would have judged otherwise. Acts by their public ID. */
export interface Simulation {
  /** Number of acts with the same result. */
  readonly same: number
  readonly newly_denied: readonly string[]
  /** Would need approvals, and was allowed or denied. */
  readonly newly_approval: readonly string[]
  readonly newly_allowed: readonly string[]
  /** Rules of the new document that had no part in any result. */
  readonly unused_rules: readonly string[]
}

interface Admission {
  readonly step: string
  readonly at_s: number
  readonly amounts: ReadonlyMap<string, bigint>
}

/** Judges acts in the order of time, with windows that fill as acts pass. */
class Replay {
  readonly #policy: Policy
  readonly #admitted = new Map<string, Admission[]>()
  readonly used = new Set<string>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  /** Returns the effect for an act. One that needs approvals is charged as if it had got them. */
  judge({ act, at_s }: PastAct): Evaluation['effect'] {
    const { effect, via, tried, windows } = evaluate(this.#policy, act, {
      now_s: at_s,
      approvals: [],
      suspended: new Set(),
      usesOf: ({ key, hours }) => this.#usesOf(key, hours, at_s),
    })
    if (via !== null) {
      this.used.add(via)
      for (const { key, amounts } of chargesOf(this.#policy, act, via))
        this.#admittedIn(key).push({ step: act.step, at_s, amounts })
    }
    for (const { rule, effect, fits } of tried) if (fits && effect !== 'allow') this.used.add(rule)
    const limits = new Set(this.#policy.rules.limit.map(({ id }) => id))
    for (const { rule } of windows) if (limits.has(rule)) this.used.add(rule)
    return effect
  }

  #admittedIn(key: string): Admission[] {
    const known = this.#admitted.get(key) ?? []
    this.#admitted.set(key, known)
    return known
  }

  #usesOf(key: string, hours: number, now: number): Use[] {
    const admitted = this.#admittedIn(key)
    // The times only grow, so what has left the window never counts again.
    while (admitted[0] !== undefined && now - admitted[0].at_s > (hours + 1) * 3600)
      admitted.shift()
    return admitted.map(({ step, at_s, amounts }) => ({ step, age_s: now - at_s, amounts }))
  }
}

/**
 * Judges acts of the past by a new document and by the one in force, each with windows of its own.
 * Approvals are not part of the past: an act that needs them passes in both. The generator yields
 * after each act, so that a server can process requests between two acts.
 * @param current the document in force; null: none, so every act was allowed
 * @param past in any order; they are judged in the order of their time
 * @throws PolicyError `ACT` or `UNKNOWN_ASSET` if an act contradicts itself
 */
export function* simulation(
  next: Policy,
  current: Policy | null,
  past: readonly PastAct[],
): Generator<undefined, Simulation> {
  const [before, after] = [current && new Replay(current), new Replay(next)]
  const changed: Record<Evaluation['effect'], string[]> = { allow: [], approve: [], deny: [] }
  let same = 0
  for (const each of [...past].sort((a, b) => a.at_s - b.at_s)) {
    const was = before?.judge(each) ?? 'allow'
    const is = after.judge(each)
    if (was === is) same++
    else changed[is].push(each.act.id)
    yield
  }
  return {
    same,
    newly_denied: changed.deny,
    newly_approval: changed.approve,
    newly_allowed: changed.allow,
    unused_rules: next.document.rules.map(({ id }) => id).filter((id) => !after.used.has(id)),
  }
}

/** Like {@link simulation}, without pauses. */
export function simulate(
  next: Policy,
  current: Policy | null,
  past: readonly PastAct[],
): Simulation {
  const steps = simulation(next, current, past)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
