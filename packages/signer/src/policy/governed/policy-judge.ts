import {
  blockedKeys,
  chargesOf,
  evaluate,
  isStopped,
  PolicyError,
  type Act,
  type Evaluation,
  type Governance,
} from '@custody/policy'
import { Refusal } from '../../errors.ts'
import type { PolicyExchange } from '../../governance/exchange.ts'
import type { Policies } from '../../governance/policies.ts'
import type { Store } from '../../store/index.ts'
import { State } from '../../store/state.ts'
import { NO_OTHERS, type OtherCharges } from '../budget.ts'
import type { Verdict, VerdictPolicy } from '../order.ts'
import type { AheadWindows } from '../run.ts'
import { uncoveredCharges, usesOf } from './windows.ts'

/** Greatest number of rules that a refusal explains. */
const TRIED_MAX = 20

/** What counts in windows besides this node's record. */
interface Besides {
  ahead?: readonly AheadWindows[]
  other?: OtherCharges
}

/**
 * Rule 17: applies the policy of a workspace. Each signature is judged by the document that is in
 * force when it begins, also if the transaction is on record.
 */
export class PolicyJudge {
  readonly #parts: { store: Store; policies: Policies; exchange: PolicyExchange }

  constructor(parts: { store: Store; policies: Policies; exchange: PolicyExchange }) {
    this.#parts = parts
  }

  /** Returns the policy in force for an order's workspace. @throws Refusal */
  #governanceOf({ order: { workspace } }: Pick<Verdict, 'order'>): Governance | null {
    return this.#parts.policies.current(workspace)
  }

  /** Returns whether a policy is in force for any of the transactions. */
  isGoverned(verdicts: readonly Verdict[]): boolean {
    return verdicts.some((verdict) => this.#governanceOf(verdict) !== null)
  }

  /** Hash of the document in force for a workspace; null if there is none. */
  hashOf(workspace: string): string | null {
    return this.#parts.policies.current(workspace)?.policy.hash ?? null
  }

  /**
   * Returns the transactions with the document in force, the rule by which each passes, and what it
   * charges. A transaction that no rule allows is returned unchanged, and refused later.
   * @param isLeader whether this node names the rule where the platform has named none
   */
  govern(
    verdicts: readonly Verdict[],
    isLeader: boolean,
    other: OtherCharges = NO_OTHERS,
  ): Verdict[] {
    const ahead: AheadWindows[] = []
    return verdicts.map((verdict) => {
      const governance = this.#governanceOf(verdict)
      const [act] = governance && verdict.isAct ? verdict.acts() : []
      if (!governance || !act) return verdict
      const named = verdict.order.policy?.via
      const best = (): string | null =>
        isLeader ? this.#evaluate(governance, act, verdict, { ahead, other }).via : null
      const via = named ?? best()
      const policy = via === null ? null : policyOf(governance, act, via)
      if (via === null || policy === null) return verdict
      ahead.push({ step: verdict.step, policy })
      const order = { ...verdict.order, policy: { ...verdict.order.policy, via } }
      return { ...verdict, order, policy }
    })
  }

  /**
   * Checks that nothing stops the sub-accounts that a transaction serves.
   * @throws Refusal `POLICY_STOPPED`
   */
  assertNotStopped(verdict: Pick<Verdict, 'order' | 'serves'>): void {
    const { serves } = verdict
    if (serves === null) return
    const governance = this.#governanceOf(verdict)
    if (governance === null || governance.stops.length === 0) return
    const { subAccountNames } = this.#parts.store.state
    const names = serves.map(
      (index) =>
        subAccountNames.get(State.subAccountIndexKey(verdict.order.workspace, index)) ?? '',
    )
    const isWhole = governance.stops.some(({ sub_account }) => sub_account === null)
    const stopped = names.find((name) => isStopped(governance, name))
    if (!isWhole && stopped === undefined) return
    const scope = isWhole ? 'the workspace' : `the sub-account ${stopped}`
    const { by } = governance.stops.find(({ sub_account }) =>
      isWhole ? sub_account === null : sub_account === stopped,
    )!
    throw new Refusal(
      'POLICY_STOPPED',
      `${by} has stopped ${scope}: nothing is signed until the approvals of "resume" end the stop`,
    )
  }

  /**
   * Checks that the policy allows a transaction.
   * @param isRecorded whether it is on record. Then windows are not asked again, except for charges
   *   that the record does not contain
   * @throws Refusal `POLICY_DENIED`, `POLICY_APPROVAL`, `POLICY_WINDOW` or `POLICY_BEHIND`
   */
  assertPasses(verdict: Verdict, isRecorded: boolean, besides: Besides = {}): void {
    const governance = this.#governanceOf(verdict)
    if (governance === null) {
      if (verdict.policy !== null) throw this.#behind(verdict)
      return
    }
    const acts = verdict.acts()
    if (acts.length === 0) return
    this.#parts.exchange.assertCurrent(governance)
    if (verdict.policy !== null && verdict.policy.hash !== governance.policy.hash)
      throw this.#behind(verdict)
    const isCovered = isRecorded && this.uncovered(verdict).length === 0
    for (const act of acts) {
      const evaluation = this.#evaluate(governance, act, verdict, isCovered ? null : besides)
      if (evaluation.effect === 'allow') continue
      const withoutWindows =
        evaluation.effect === 'deny' ? this.#evaluate(governance, act, verdict, null) : evaluation
      throw refusalOf(governance, evaluation, withoutWindows)
    }
  }

  /** Charges of a transaction that this node's record does not contain. */
  uncovered(verdict: Verdict): VerdictPolicy['charges'] {
    const { store } = this.#parts
    return uncoveredCharges(
      {
        own: store.state.spending,
        workspace: verdict.order.workspace,
        clockMs: store.clock(),
      },
      verdict,
    )
  }

  /** @param besides null: windows are left out */
  #evaluate(
    governance: Governance,
    act: Act,
    { order: { workspace, policy }, isAct }: Verdict,
    besides: Besides | null,
  ): Evaluation {
    const { store } = this.#parts
    const { ahead = [], other = NO_OTHERS } = besides ?? {}
    const records = { own: store.state.spending, other, ahead, workspace, clockMs: store.clock() }
    const via = isAct ? policy?.via : undefined
    return evaluate(governance.policy, act, {
      now_s: store.seconds(),
      approvals: [],
      suspended: blockedKeys(governance),
      usesOf: besides === null ? () => [] : (charge) => usesOf(records, charge),
      ...(via === undefined ? {} : { via }),
    })
  }

  #behind({ order: { workspace } }: Verdict): Refusal {
    return new Refusal(
      'POLICY_BEHIND',
      `The policy of the workspace ${workspace} has changed since the order was judged; send it again`,
    )
  }
}

/** Returns what an act charges by a rule; null if the document has no such allow rule. */
function policyOf({ policy }: Governance, act: Act, via: string): VerdictPolicy | null {
  try {
    const { document, hash } = policy
    return { number: document.number, hash, via, charges: chargesOf(policy, act, via) }
  } catch (error) {
    if (error instanceof PolicyError) return null
    throw error
  }
}

/**
 * Returns the reason why an act is not allowed.
 * @param withoutWindows the evaluation as if the windows were empty
 */
function refusalOf(
  { policy: { document } }: Governance,
  evaluation: Evaluation,
  withoutWindows: Evaluation,
): Refusal {
  const { effect, needs, nearest, tried, windows } = evaluation
  const detail = { policy: document.number, tried: tried.slice(0, TRIED_MAX) }
  if (effect === 'approve') {
    const missing = needs
      .filter(({ k, have }) => have < k)
      .map(({ group, k, have }) => `${k - have} of ${group}`)
    return new Refusal(
      'POLICY_APPROVAL',
      `The policy ${document.number} requires approvals that are missing: ${missing.join(' and ')}`,
      { ...detail, via: evaluation.via, needs },
    )
  }
  if (withoutWindows.effect !== 'deny') {
    // The rule that would allow it, and every limit whose window is full.
    const full = windows.filter(
      ({ rule, fits }) =>
        !fits &&
        (rule === withoutWindows.via || tried.some((each) => each.rule === rule && each.fits)),
    )
    const rules = new Set(full.map(({ rule }) => rule))
    const whys = tried.flatMap(({ rule, why }) => (rules.has(rule) && why !== null ? [why] : []))
    const frees = full.map(({ frees_at }) => frees_at ?? Infinity)
    const last = Math.max(...frees)
    return new Refusal(
      'POLICY_WINDOW',
      `A window of the policy ${document.number} is full: ${[...rules].join(', ')}: ${whys.join('; ')}`,
      { ...detail, frees_at: Number.isFinite(last) ? last : null },
    )
  }
  const why = nearest
    ? `the nearest rule is "${nearest.rule}": ${nearest.why}`
    : (tried.find(({ fits }) => fits)?.why ?? 'it has no rule that allows the transaction')
  return new Refusal(
    'POLICY_DENIED',
    `The policy ${document.number} does not allow the transaction; ${why}`,
    detail,
  )
}
