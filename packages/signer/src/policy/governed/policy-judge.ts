import {
  blockedKeys,
  chargesOf,
  evaluate,
  isStopped,
  PolicyError,
  statementHash,
  verifyDecisions,
  type Act,
  type CarriedApproval,
  type Decisions,
  type Evaluation,
  type Governance,
  type PersonKey,
  type Proof,
  type Statement,
} from '@custody/policy'
import { Refusal } from '../../errors.ts'
import { isSignedNatively } from '../../governance/native-verify.ts'
import type { PolicyExchange } from '../../governance/exchange.ts'
import type { Policies } from '../../governance/policies.ts'
import type { Store } from '../../store/index.ts'
import { State } from '../../store/state.ts'
import { NO_OTHERS, type OtherCharges } from '../budget.ts'
import type { Verdict, VerdictPolicy } from '../order.ts'
import type { AheadWindows } from '../run.ts'
import { uncoveredCharges, usesOf } from './windows.ts'

/** Greatest number of rules that a refusal explains. */
export const TRIED_MAX = 20

/** Greatest number of signatures that are remembered as verified. */
const VERIFIED_MAX = 4_096

/** What counts in windows besides this node's record. */
interface Besides {
  ahead?: readonly AheadWindows[]
  other?: OtherCharges
}

/** An act with what accompanies it, as a policy judges it. */
export interface Accompanied {
  act: Act
  /** Rule by which it is to pass; undefined: any. */
  via: string | undefined
  /** People's decisions about this act and others. */
  decisions: readonly CarriedApproval[]
}

/** What a policy says about an act. */
export interface Judged {
  evaluation: Evaluation
  decisions: Decisions
  /** Why a signature would be refused now; null if it would not. */
  refusal: Refusal | null
}

/**
 * Rule 17: applies the policy of a workspace. Each signature is judged by the document that is in
 * force when it begins, also if the transaction is on record.
 */
export class PolicyJudge {
  readonly #parts: { store: Store; policies: Policies; exchange: PolicyExchange }
  /** Statements and signatures that were verified, oldest first. */
  readonly #verified = new Set<string>()

  constructor(parts: { store: Store; policies: Policies; exchange: PolicyExchange }) {
    this.#parts = parts
  }

  /** Returns the policy in force for an order's workspace. @throws Refusal */
  #governanceOf({
    order: { workspace },
  }: {
    order: Pick<Verdict['order'], 'workspace'>
  }): Governance | null {
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

  /** Number and hash of the document in force for a workspace; null if there is none. */
  inForce(workspace: string): { number: number; hash: string } | null {
    const policy = this.#parts.policies.current(workspace)?.policy
    return policy ? { number: policy.document.number, hash: policy.hash } : null
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
        isLeader
          ? this.#evaluate(governance, accompanied(act, verdict), { ahead, other }).evaluation.via
          : null
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
  assertNotStopped(verdict: {
    order: Pick<Verdict['order'], 'workspace'>
    serves: Verdict['serves']
  }): void {
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
      const { refusal } = this.#judge(
        governance,
        accompanied(act, verdict),
        isCovered ? null : besides,
      )
      if (refusal !== null) throw refusal
    }
  }

  /**
   * Judges a requested act for which there is no transaction yet, by this node's record alone.
   * @param serves index of the sub-account for which it would be made
   * @returns null if the workspace has no policy
   * @throws Refusal `POLICY_STOPPED` or `POLICY_BEHIND`
   */
  preview(accompanied: Accompanied, serves: number): (Judged & { governance: Governance }) | null {
    const { workspace } = accompanied.act
    const governance = this.#parts.policies.current(workspace)
    if (governance === null) return null
    this.assertNotStopped({ order: { workspace }, serves: [serves] })
    this.#parts.exchange.assertCurrent(governance)
    return { governance, ...this.#judge(governance, accompanied, {}) }
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
  #judge(governance: Governance, accompanied: Accompanied, besides: Besides | null): Judged {
    const judged = this.#evaluate(governance, accompanied, besides)
    const { evaluation, decisions } = judged
    if (evaluation.effect === 'allow') return { ...judged, refusal: null }
    const withoutWindows =
      evaluation.effect === 'deny'
        ? this.#evaluate(governance, accompanied, null).evaluation
        : evaluation
    return { ...judged, refusal: refusalOf(governance, { evaluation, decisions, withoutWindows }) }
  }

  #evaluate(
    { policy, ...governance }: Governance,
    { act, via, decisions: carried }: Accompanied,
    besides: Besides | null,
  ): Omit<Judged, 'refusal'> {
    const { store } = this.#parts
    const { workspace } = act
    const { ahead = [], other = NO_OTHERS } = besides ?? {}
    const records = { own: store.state.spending, other, ahead, workspace, clockMs: store.clock() }
    const context = {
      now_s: store.seconds(),
      suspended: blockedKeys({ policy, ...governance }),
      isSigned: (key: PersonKey, statement: Statement, proof: Proof) =>
        this.#isSigned(key, statement, proof),
    }
    const decisions = verifyDecisions(policy, act, carried, context)
    const evaluation = evaluate(policy, act, {
      ...context,
      approvals: decisions.approvals,
      usesOf: besides === null ? () => [] : (charge) => usesOf(records, charge),
      ...(via === undefined ? {} : { via }),
    })
    return { evaluation, decisions }
  }

  /**
   * Verifies a signature, once for each statement. The statement names the document and the key, so
   * its hash stands for them too.
   */
  #isSigned(key: PersonKey, statement: Statement, proof: Proof): boolean {
    const name = `${statementHash(statement)} ${JSON.stringify(proof)}`
    if (this.#verified.has(name)) return true
    if (!isSignedNatively(key, statement, proof)) return false
    this.#verified.add(name)
    if (this.#verified.size > VERIFIED_MAX)
      for (const oldest of this.#verified) {
        this.#verified.delete(oldest)
        break
      }
    return true
  }

  #behind({ order: { workspace } }: Verdict): Refusal {
    return new Refusal(
      'POLICY_BEHIND',
      `The policy of the workspace ${workspace} has changed since the order was judged; send it again`,
    )
  }
}

/** Returns an act of a transaction with what its order carries. */
const accompanied = (act: Act, { order: { policy }, isAct }: Verdict): Accompanied => ({
  act,
  via: isAct ? policy?.via : undefined,
  decisions: policy?.approvals ?? [],
})

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
  {
    evaluation,
    decisions: { ignored },
    withoutWindows,
  }: Omit<Judged, 'refusal'> & { withoutWindows: Evaluation },
): Refusal {
  const { effect, needs, nearest, tried, windows } = evaluation
  const detail = { policy: document.number, tried: tried.slice(0, TRIED_MAX) }
  if (effect === 'approve') {
    const missing = needs
      .filter(({ k, have }) => have < k)
      .map(({ group, k, have }) => `${k - have} of ${group}`)
    const [first] = ignored
    const unusable =
      first === undefined ? '' : `. The approval of ${first.by} does not count: ${first.why}`
    return new Refusal(
      'POLICY_APPROVAL',
      `The policy ${document.number} requires approvals that are missing: ${missing.join(' and ')}${unusable}`,
      { ...detail, via: evaluation.via, needs, ignored },
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
