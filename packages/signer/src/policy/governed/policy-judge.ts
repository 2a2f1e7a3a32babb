import {
  blockedKeys,
  chargesOfPrepared,
  evaluatePrepared,
  PolicyError,
  verifyDecisions,
  type Act,
  type CarriedApproval,
  type Decisions,
  type Evaluation,
  type Governance,
  type PersonKey,
  type Policy,
  type Proof,
  type Statement,
  type Stop,
} from '@custody/policy'
import { sha256hex } from '../../canonical.ts'
import { Refusal } from '../../errors.ts'
import { assertApproved } from '../../governance/enrolments.ts'
import { isSignedNatively } from '../../governance/native-verify.ts'
import type { PolicyExchange } from '../../governance/exchange.ts'
import type { Policies } from '../../governance/policies.ts'
import { approvalsOnRecord } from '../../governance/standing.ts'
import { assertOrderApproved } from '../../governance/tank-orders.ts'
import type { Store } from '../../store/index.ts'
import { State } from '../../store/state.ts'
import { NO_OTHERS, type OtherCharges } from '../budget.ts'
import type { Verdict, VerdictPolicy } from '../order.ts'
import type { AheadWindows } from '../run.ts'
import type { OwnAddresses } from './own-addresses.ts'
import { JudgedActs, recall, type Inputs } from './judged-acts.ts'
import { countNearlyFull, windowUses } from './window-uses.ts'
import { sumOf, uncoveredCharges, usesOf } from './windows.ts'

/** Greatest number of rules that a refusal explains. */
export const TRIED_MAX = 20

/** Greatest number of signatures that are remembered as verified. */
const VERIFIED_MAX = 4_096

/** Time for which the number of nearly full windows is used again, in milliseconds. */
const COUNTED_MS = 30_000

/** Time for which an order waits until own addresses are derived, in milliseconds. */
const OWN_ADDRESSES_MS = 3000

/** One array, so that judgements of an order without decisions have the same inputs. */
const NO_DECISIONS: readonly CarriedApproval[] = []

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

interface Parts {
  store: Store
  policies: Policies
  exchange: PolicyExchange
  /** Returns what counts besides this node's record, as far as it knows each peer's. */
  known: () => readonly OtherCharges[]
  own: Pick<OwnAddresses, 'ownerOf' | 'ready'>
}

/**
 * Rule 17: applies the policy of a workspace. Each signature is judged by the document that is in
 * force when it begins, also if the transaction is on record.
 */
export class PolicyJudge {
  readonly #parts: Parts
  /** Statements and signatures that were verified, oldest first. */
  readonly #verified = new Set<string>()
  readonly #acts = new JudgedActs<Omit<Judged, 'refusal'>>()
  /** Suspended and revoked keys of each state of a policy. */
  readonly #blocked = new WeakMap<Governance, ReadonlySet<string>>()

  #nearlyFull = { at: -Infinity, count: 0 }

  constructor(parts: Parts) {
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
   * charges. This node names the rule if the order names none, as a leader and as a partner. A transaction that no
   * rule allows is returned unchanged, and refused later.
   */
  govern(verdicts: readonly Verdict[], other: OtherCharges = NO_OTHERS): Verdict[] {
    const ahead: AheadWindows[] = []
    return verdicts.map((verdict) => {
      const governance = this.#governanceOf(verdict)
      const [act] = governance && verdict.isAct ? this.#actsOf(governance, verdict) : []
      if (!governance || !act) return verdict
      const via =
        verdict.order.policy?.via ??
        this.#evaluate(governance, accompanied(act, verdict), { ahead, other }).evaluation.via
      const policy = via === null ? null : this.#chargedPolicy(governance, act, via)
      if (via === null || policy === null) return verdict
      ahead.push({ step: verdict.step, policy })
      const order = { ...verdict.order, policy: { ...verdict.order.policy, via } }
      return { ...verdict, order, policy }
    })
  }

  /**
   * Checks that nothing stops the sub-accounts that a transaction serves. A sub-account that has no
   * name on this node's record could be any of those that are stopped.
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
    const nameOf = (index: number): string | null =>
      subAccountNames.get(State.subAccountIndexKey(verdict.order.workspace, index)) ?? null
    const isHeld = (index: number, { sub_account: stopped }: Stop): boolean => {
      const name = nameOf(index)
      return name === null || name === stopped
    }
    const stop =
      governance.stops.find(({ sub_account }) => sub_account === null) ??
      governance.stops.find((each) => serves.some((index) => isHeld(index, each)))
    if (stop === undefined) return
    const { by, sub_account: name } = stop
    const unnamed = serves.find((index) => nameOf(index) === null)
    const scope = name === null ? 'the workspace' : `the sub-account ${name}`
    const why =
      name !== null && unnamed !== undefined
        ? `, and sub-account ${unnamed} has no name on this node's record`
        : ''
    throw new Refusal(
      'POLICY_STOPPED',
      `${by} has stopped ${scope}${why}: nothing is signed until the approvals of "resume" end the stop`,
    )
  }

  /**
   * Checks that people have approved the enrolments of API keys, if a policy requires it.
   * @throws Refusal `ENROLMENT_APPROVAL`
   */
  assertEnrolled(apiKeys: readonly string[]): void {
    const { store, policies } = this.#parts
    for (const apiKey of apiKeys) {
      const enrolment = store.state.enrolments.get(apiKey)
      if (enrolment?.approval_policy === undefined) continue
      assertApproved(policies.held(enrolment.workspace), enrolment)
    }
  }

  /**
   * Checks that the policy allows a transaction.
   * @param isRecorded whether it is on record. Then windows are not asked again, except for charges
   *   that the record does not contain
   * @throws Refusal `POLICY_DENIED`, `POLICY_APPROVAL`, `POLICY_WINDOW`, `POLICY_BEHIND` or
   *   `ORDER_APPROVAL`
   */
  assertPasses(verdict: Verdict, isRecorded: boolean, besides: Besides = {}): void {
    const governance = this.#governanceOf(verdict)
    if (governance === null) {
      if (verdict.policy !== null) throw this.#behind(verdict)
      return
    }
    if (verdict.ordered !== null) {
      this.#parts.exchange.assertCurrent(governance)
      const { policies, store } = this.#parts
      const held = policies.held(verdict.order.workspace)
      assertOrderApproved(held, verdict.ordered, store.seconds())
    }
    const acts = this.#actsOf(governance, verdict)
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
    // What is allowed is charged, also by a document that came into force in the meantime.
    if (verdict.isAct && verdict.policy === null) throw this.#behind(verdict)
  }

  /**
   * Judges a requested act for which there is no transaction yet, by this node's record and by what
   * it knows of its peers'. The signature may count more, because each of them may have signed since.
   * @param serves index of the sub-account for which it would be made
   * @returns null if the workspace has no policy
   * @throws Refusal `ENROLMENT_APPROVAL`, `POLICY_STOPPED` or `POLICY_BEHIND`
   */
  preview(previewed: Accompanied, serves: number): (Judged & { governance: Governance }) | null {
    const { workspace } = previewed.act
    const governance = this.#parts.policies.current(workspace)
    if (governance === null) return null
    const accompanied = { ...previewed, act: this.#withOwn(governance.policy, previewed.act) }
    this.assertEnrolled([accompanied.act.api_key])
    this.assertNotStopped({ order: { workspace }, serves: [serves] })
    this.#parts.exchange.assertCurrent(governance)
    // Whichever peer takes part in the signature, no more is allowed than with the stricter one.
    const judged = this.#parts
      .known()
      .map((other) => this.#judge(governance, accompanied, { other }))
    const found = judged.find(({ refusal }) => refusal !== null) ?? judged[0]
    return { governance, ...(found ?? this.#judge(governance, accompanied, {})) }
  }

  /**
   * Returns the acts of a transaction, with the decision which of their destinations are own addresses
   * if a rule depends on it.
   * @throws Refusal `POLICY_BEHIND` while the own addresses are being derived
   */
  #actsOf({ policy }: Governance, verdict: Pick<Verdict, 'acts'>): Act[] {
    return verdict.acts().map((act) => this.#withOwn(policy, act))
  }

  /**
   * Waits until the own addresses of a workspace are derived, if its policy depends on them, so that
   * only those of a workspace with very many addresses make an order wait.
   */
  async prepareOwn(workspace: string, network: string): Promise<void> {
    const policy = this.#parts.policies.current(workspace)?.policy
    if (policy && dependsOnOwn(policy))
      await this.#parts.own.ready(workspace, network, OWN_ADDRESSES_MS)
  }

  #withOwn(policy: Policy, act: Act): Act {
    const { workspace, network, to } = act
    if (to.own !== 'unknown' || !dependsOnOwn(policy)) return act
    const owner = this.#parts.own.ownerOf(workspace, network, to.address)
    if (owner === undefined)
      throw new Refusal(
        'POLICY_BEHIND',
        'The policy depends on own addresses, which this node is still deriving; send the order again',
      )
    // Such a destination matches every rule that restricts own addresses.
    if (owner === 'unknown') return act
    const { subAccountNames } = this.#parts.store.state
    const isSame =
      owner !== null &&
      subAccountNames.get(State.subAccountIndexKey(workspace, owner)) === act.sub_account
    const own = owner === null ? null : isSame ? 'sub_account' : 'workspace'
    return { ...act, to: { ...to, own } }
  }

  /** Returns what counts in the windows of a policy; null if the workspace has none. */
  windowUses(workspace: string): Record<string, unknown> | null {
    const governance = this.#parts.policies.current(workspace)
    return governance && windowUses(governance.policy, this.#windowRecords(workspace))
  }

  /** Returns how many windows of all policies are nearly full, as of at most 30 seconds ago. */
  windowsNearlyFull(): number {
    const { store, policies } = this.#parts
    const clockMs = store.clock()
    if (Math.abs(clockMs - this.#nearlyFull.at) < COUNTED_MS) return this.#nearlyFull.count
    let count = 0
    for (const workspace of policies.workspaces) {
      const isReadable = policies.isCurrent(workspace, () => true)
      const policy = isReadable ? policies.current(workspace)?.policy : undefined
      if (policy) count += countNearlyFull(policy, this.#windowRecords(workspace))
    }
    this.#nearlyFull = { at: clockMs, count }
    return count
  }

  #windowRecords(workspace: string) {
    const { store, known } = this.#parts
    return { own: store.state.spending, others: known(), workspace, clockMs: store.clock() }
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
    governance: Governance,
    { act, via, decisions: carried }: Accompanied,
    besides: Besides | null,
  ): Omit<Judged, 'refusal'> {
    const { store } = this.#parts
    const { policy } = governance
    const own = store.state.spending
    const clockMs = store.clock()
    const windows = besides && {
      own,
      other: besides.other ?? NO_OTHERS,
      ahead: besides.ahead ?? [],
    }
    const inputs: Inputs = { governance, decisions: carried, via, windows, clockMs }
    const remembered = this.#acts.of(policy, act)
    const recalled = recall(remembered, inputs)
    if (recalled !== null) return recalled
    const records = windows && { ...windows, workspace: act.workspace, clockMs }
    const context = {
      // Of the same reading of the clock, which determines when a judgement may be used again.
      now_s: Math.floor(clockMs / 1000),
      suspended: this.#blockedKeys(governance),
      verified: remembered.verified,
      isSigned: (key: PersonKey, statement: Statement, proof: Proof) =>
        this.#isSigned(key, statement, proof),
    }
    const decisions = verifyDecisions(policy, act, carried, context)
    const evaluateWith = (approvals: Decisions['approvals']): Evaluation =>
      evaluatePrepared(remembered.prepared, {
        ...context,
        approvals,
        usesOf: (charge) => (records === null ? [] : usesOf(records, charge)),
        ...(records === null ? {} : { sumOf: (charge, step) => sumOf(records, charge, step) }),
        ...(via === undefined ? {} : { via }),
      })
    // Approvals that were recorded together must suffice together, because they were in time together.
    const recorded = act.standing === null ? [] : this.#approvalsOnRecord(act)
    let evaluation = evaluateWith(decisions.approvals)
    for (const approvals of recorded)
      if (evaluation.effect === 'approve') {
        const other = evaluateWith(approvals)
        if (other.effect === 'allow') evaluation = other
      }
    const judged = { evaluation, decisions }
    if (evaluation.effect === 'allow' && evaluation.via !== null)
      this.#acts.remember(remembered, inputs, { via: evaluation.via, result: judged })
    return judged
  }

  /** Returns the approvals that are on record of the standing rule of a forward. */
  #approvalsOnRecord(act: Act): Decisions['approvals'][] {
    const held = this.#parts.policies.held(act.workspace)
    return approvalsOnRecord(held, held.approved, act)
  }

  #blockedKeys(governance: Governance): ReadonlySet<string> {
    const known = this.#blocked.get(governance)
    if (known) return known
    const keys = blockedKeys(governance)
    this.#blocked.set(governance, keys)
    return keys
  }

  /** Returns what an act charges by a rule; null if the document has no such allow rule. */
  #chargedPolicy({ policy }: Governance, act: Act, via: string): VerdictPolicy | null {
    try {
      const { document, hash } = policy
      const charges = chargesOfPrepared(this.#acts.of(policy, act).prepared, via)
      return { number: document.number, hash, via, charges }
    } catch (error) {
      if (error instanceof PolicyError) return null
      throw error
    }
  }

  /**
   * Verifies a signature, once for each statement. The statement names the document and the key, so
   * the hash of its fields stands for them too.
   */
  #isSigned(key: PersonKey, statement: Statement, proof: Proof): boolean {
    const name = sha256hex(JSON.stringify([statement, proof]))
    if (this.#verified.has(name)) return true
    if (!isSignedNatively(key, statement, proof)) return false
    this.#verified.add(name)
    const [oldest] = this.#verified
    if (this.#verified.size > VERIFIED_MAX && oldest !== undefined) this.#verified.delete(oldest)
    return true
  }

  #behind({ order: { workspace } }: Verdict): Refusal {
    return new Refusal(
      'POLICY_BEHIND',
      `The policy of the workspace ${workspace} has changed since the order was judged; send it again`,
    )
  }
}

const OWN_RULES = new WeakMap<Policy, boolean>()
/** Returns whether a rule of a policy matches own addresses. */
function dependsOnOwn(policy: Policy): boolean {
  const known = OWN_RULES.get(policy)
  if (known !== undefined) return known
  const depends = policy.document.rules.some(
    ({ match: { to } }) => typeof to === 'object' && to.own !== undefined,
  )
  OWN_RULES.set(policy, depends)
  return depends
}

/** Returns an act of a transaction with what its order carries. */
const accompanied = (act: Act, { order: { policy }, isAct }: Verdict): Accompanied => ({
  act,
  via: isAct ? policy?.via : undefined,
  decisions: policy?.approvals ?? NO_DECISIONS,
})

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
