import {
  prepareAct,
  type Act,
  type Governance,
  type Policy,
  type PreparedAct,
} from '@custody/policy'
import type { Spending } from '../../store/spending.ts'
import type { OtherCharges } from '../budget.ts'
import type { AheadWindows } from '../run.ts'

/** Greatest number of acts that are remembered; each has a few kilobytes. */
const ACTS_MAX = 1_024

/** Greatest number of judgements that are remembered, because each refers to a partner's record. */
const ALLOWED_MAX = 64

/** Everything that a judgement of an act depends on, besides the act. */
export interface Inputs {
  /** Document, stops, and suspended and revoked keys. A change replaces the object. */
  readonly governance: Governance
  /** Decisions that the order carries. */
  readonly decisions: readonly unknown[]
  /** Rule by which the act is to pass; undefined: any. */
  readonly via: string | undefined
  /** Null: windows are left out. */
  readonly windows: {
    readonly own: Spending
    readonly other: OtherCharges
    readonly ahead: readonly AheadWindows[]
  } | null
  /** The node's clock. */
  readonly clockMs: number
}

/** An act with what was computed for it under one document. */
export interface RememberedAct<T> {
  readonly prepared: PreparedAct
  /** Names of the decisions whose signatures were verified (`verifyDecisions`). */
  readonly verified: Set<string>
  /** The last judgement that allowed the act. */
  allowed: Allowed<T> | null
}

/** A judgement that allowed an act, with what it depended on. */
interface Allowed<T> {
  readonly inputs: Inputs
  /** Rule by which the act passes. */
  readonly via: string
  readonly revisions: readonly number[]
  readonly result: T
}

/**
 * Acts that are being judged. A signature judges the same act several times: for the best rule, before
 * the order is sent, and before the step is recorded. What depends on the document and the act alone
 * is computed once. A judgement is used again only within the same second, if nothing that it depends
 * on has changed.
 */
export class JudgedActs<T> {
  /** By the hash of the document and all fields of the act, oldest first. */
  readonly #acts = new Map<string, RememberedAct<T>>()
  /** Acts with a judgement, the latest last. */
  readonly #allowed = new Set<RememberedAct<T>>()

  /** @throws PolicyError `ACT` or `UNKNOWN_ASSET` if the act contradicts itself */
  of(policy: Policy, act: Act): RememberedAct<T> {
    const name = `${policy.hash} ${textOf(act)}`
    const known = this.#acts.get(name)
    // A policy is compiled again if the state of the node is computed again.
    if (known?.prepared.policy === policy) return known
    const remembered: RememberedAct<T> = {
      prepared: prepareAct(policy, act),
      verified: new Set(),
      allowed: null,
    }
    this.#acts.set(name, remembered)
    const [oldest] = this.#acts.keys()
    if (this.#acts.size > ACTS_MAX && oldest !== undefined) this.#acts.delete(oldest)
    return remembered
  }

  /** Remembers a judgement that allowed the act. @param via rule by which it passes */
  remember(
    act: RememberedAct<T>,
    inputs: Inputs,
    { via, result }: { via: string; result: T },
  ): void {
    // The caller may add to the run.
    const windows = inputs.windows && { ...inputs.windows, ahead: [...inputs.windows.ahead] }
    act.allowed = { inputs: { ...inputs, windows }, via, revisions: revisionsOf(inputs), result }
    this.#allowed.delete(act)
    this.#allowed.add(act)
    const [oldest] = this.#allowed
    if (this.#allowed.size <= ALLOWED_MAX || oldest === undefined) return
    oldest.allowed = null
    this.#allowed.delete(oldest)
  }
}

/**
 * Returns the last judgement that allowed an act if a judgement of the same act by these inputs would
 * be the same; null otherwise.
 */
export function recall<T>({ allowed }: RememberedAct<T>, inputs: Inputs): T | null {
  if (allowed === null) return null
  const { inputs: before, via, revisions, result } = allowed
  const isSame =
    before.governance === inputs.governance &&
    before.decisions === inputs.decisions &&
    // The best rule was judged together with the others, so naming it changes nothing.
    (inputs.via === before.via || inputs.via === via) &&
    isSameTime(before.clockMs, inputs.clockMs) &&
    areSameWindows(before.windows, inputs.windows) &&
    revisionsOf(inputs).every((revision, at) => revision === revisions[at])
  return isSame ? result : null
}

/**
 * Approvals expire at full seconds. Within a second, time can only remove charges from windows, which
 * allows nothing less, as long as the clock is not set back.
 */
const isSameTime = (before: number, now: number): boolean =>
  now >= before && Math.floor(now / 1000) === Math.floor(before / 1000)

function areSameWindows(before: Inputs['windows'], now: Inputs['windows']): boolean {
  if (before === null || now === null) return before === now
  return (
    before.own === now.own &&
    before.other === now.other &&
    before.ahead.length === now.ahead.length &&
    before.ahead.every(
      ({ step, policy }, at) => step === now.ahead[at]!.step && policy === now.ahead[at]!.policy,
    )
  )
}

/** Returns numbers that change with the charges on both records. */
const revisionsOf = ({ windows }: Inputs): number[] =>
  windows === null ? [] : [windows.own.revision, windows.other.recorded.revision]

/** Returns all fields of an act as text, the same for equal acts only. */
function textOf({ amount, fee, standing, to, ...act }: Act): string {
  // Written out, because a replacer for the amounts would cost more than an evaluation.
  const { id, subject, step, action, workspace, sub_account, api_key, person, ...others } = act
  const { asset, network, issued_at, resource, ...none } = others
  none satisfies Record<string, never>
  return JSON.stringify([
    [id, subject, step, action, workspace, sub_account, api_key, person ?? ''],
    [asset, network, issued_at, resource, amount.toString()],
    [to.address, to.tag, to.own],
    [fee.max.toString(), fee.limit.toString(), (fee.replacement ?? 0n).toString()],
    standing && [standing.min_amount.toString(), standing.daily_cap.toString(), standing.ends_at],
  ])
}
