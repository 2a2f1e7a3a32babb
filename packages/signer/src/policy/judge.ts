import type { DecodedTransaction } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { Intent } from '../intent/index.ts'
import type { Proven } from '../intent/request.ts'
import type { Body, NewEntry } from '../store/entries/index.ts'
import { State, type StepEntry } from '../store/state.ts'
import { authorityOf } from './authorities/index.ts'
import type { Context } from './context.ts'
import { assertBudget, NO_OTHERS, type OtherCharges } from './budget.ts'
import { understand } from './callers.ts'
import { assertExclusive, decodeDecoded, encodeDecoded } from './exclusivity.ts'
import { assertExpiry } from './expiry.ts'
import { assertMeaningsAgree, assertNotVoided, assertOneMeaning } from './identity.ts'
import { assertLeftover } from './leftover.ts'
import { accountOf, assertNonce } from './nonce.ts'
import { assertRun, each, eachNow, NOTHING_AHEAD, type Ahead } from './run.ts'
import type { PolicyJudge } from './governed/policy-judge.ts'
import { dryRun } from './governed/dry-run.ts'
import { preview } from './governed/preview.ts'
import { namesOf, type GovernedVerdict, type Order, type Signed, type Verdict } from './order.ts'
import { chargedBy, recordedPolicy } from './governed/windows.ts'

/** The data of its session that a step records. */
export type Session = Pick<Body<'step'>, 'sessions' | 'partner' | 'peer_head'>

/**
 * Applies every rule, in a fixed order: the authorities check what does not depend on the record
 * (`judge`), `assertAllowed` checks the record in the same way for all purposes, and `admit` writes
 * the step before a signature can exist.
 */
export class Judge {
  readonly #parts: Context
  readonly #policy: PolicyJudge | null

  /** @param policy applies the policies of workspaces; null: no workspace has one */
  constructor(parts: Context, policy: PolicyJudge | null = null) {
    this.#parts = parts
    this.#policy = policy
  }

  /** Returns whether a policy is in force for any of the transactions. */
  isGoverned(verdicts: readonly Verdict[]): boolean {
    return this.#policy?.isGoverned(verdicts) ?? false
  }

  /** Judges a request by the policy of its workspace; see `governed/preview.ts`. */
  async preview(body: Parameters<typeof preview>[2]): Promise<Record<string, unknown>> {
    return this.#policy ? preview(this.#parts, this.#policy, body) : { policy: null }
  }

  /** Evaluates a request that was not signed; see `governed/dry-run.ts`. */
  async dryRun(body: Parameters<typeof dryRun>[2]): Promise<Record<string, unknown>> {
    return this.#policy ? dryRun(this.#parts, this.#policy, body) : { policy: null }
  }

  /** Returns what counts in the windows of a workspace's policy; see `governed/window-uses.ts`. */
  windowUses(workspace: string): Record<string, unknown> {
    return this.#policy?.windowUses(workspace) ?? { policy: null }
  }

  /** See {@link PolicyJudge.windowsNearlyFull}. */
  windowsNearlyFull(): number {
    return this.#policy?.windowsNearlyFull() ?? 0
  }

  /** Returns the hash of the policy in force for a workspace; null if there is none. */
  policyHashOf(workspace: string): string | null {
    return this.#policy?.hashOf(workspace) ?? null
  }

  /** See {@link PolicyJudge.prepareOwn}. */
  async prepareOwn({ order: { workspace }, network }: Verdict): Promise<void> {
    await this.#policy?.prepareOwn(workspace, network.code)
  }

  /** See {@link PolicyJudge.govern}. */
  govern(verdicts: readonly Verdict[], other: OtherCharges = NO_OTHERS): GovernedVerdict[] {
    // This is the only place that makes governed verdicts.
    return (this.#policy?.govern(verdicts, other) ?? verdicts) as GovernedVerdict[]
  }

  /** Checks that no stop applies to any of the transactions. @throws Refusal `POLICY_STOPPED` */
  assertNotStopped(verdicts: readonly Verdict[]): void {
    for (const verdict of verdicts) this.#policy?.assertNotStopped(verdict)
  }

  judge(order: Order): Promise<Verdict> {
    // Its record is lost, so it does not know what it has signed for callers.
    if (this.#parts.store.state.recovering && order.purpose.kind !== 'recover') {
      throw new Refusal(
        'RESTORING',
        'This node was opened for a recovery and signs no other transactions',
      )
    }
    return authorityOf(order.purpose)(this.#parts, order, order.purpose)
  }

  /** Verifies and parses a caller's request; also used for receipts. */
  understand(request: Signed['request']): Promise<{ proven: Proven; want: Intent }> {
    return understand(this.#parts, request)
  }

  /**
   * Evaluates the orders of one session, each independently. A single order may have any purpose;
   * several orders are a run.
   */
  async judgeAll(orders: readonly Order[]): Promise<Verdict[]> {
    const verdicts = await each(orders, (order) => this.judge(order))
    if (verdicts.length > 1) assertRun(verdicts)
    assertMeaningsAgree(verdicts.flatMap(({ seen }) => seen))
    return verdicts
  }

  /**
   * Checks each order of a run against the record, as if those before it had been recorded.
   * @param other charges that count besides those on record
   */
  assertAllAllowed(
    verdicts: readonly GovernedVerdict[],
    other: OtherCharges = NO_OTHERS,
  ): (StepEntry | null)[] {
    const account = verdicts[0] ? accountOf(verdicts[0]) : null
    let ahead: Ahead = { ...NOTHING_AHEAD, nonce: account === null ? null : other.nonce(account) }
    return eachNow(verdicts, (verdict) => {
      const existing = this.assertAllowed(verdict, ahead, other)
      // A transaction that is on record already is counted by the record.
      ahead = {
        nonce: largestOf(ahead.nonce, verdict.decoded.nonce),
        charges: [...ahead.charges, ...(existing ? [] : verdict.charges)],
        windows: verdict.policy
          ? [...ahead.windows, { step: verdict.step, policy: verdict.policy }]
          : ahead.windows,
      }
      return existing
    })
  }

  /**
   * Checks a verdict against the record. Synchronous: nothing may happen between this check and the
   * write that follows it.
   * @param ahead data of the orders that are recorded together with this order and before it
   * @param other charges that count besides those on record
   */
  assertAllowed(
    verdict: GovernedVerdict,
    ahead: Ahead = NOTHING_AHEAD,
    other: OtherCharges = NO_OTHERS,
  ): StepEntry | null {
    const { state } = this.#parts.store
    this.#policy?.assertNotStopped(verdict)
    assertNotVoided(state, verdict.voidNames)
    if (verdict.callers.some((apiKey) => state.enrolments.get(apiKey)?.revoked !== false)) {
      throw new Refusal('NOT_ENROLLED', 'The API key is revoked at this node')
    }
    this.#policy?.assertEnrolled(verdict.callers)
    for (const seen of verdict.seen)
      assertOneMeaning(state, seen.api_key, seen.nonce, seen.intent, seen.content)
    const earlier = namesOf(verdict).map((step) => state.steps.get(step) ?? [])
    const isThis = (entry: StepEntry): boolean => entry.unsigned_hash === verdict.unsignedHash
    const same = earlier.every((steps) => steps.some(isThis)) ? earlier[0]!.find(isThis) : undefined
    // An identical transaction counts as signed already, so it may be signed again whatever its
    // age.
    if (same?.signed) return same
    // Before the policy, because a platform that lost a signed transaction must learn of it, also if
    // the policy allows no further one.
    if (!same)
      for (const steps of earlier) {
        assertExclusive(
          this.#parts.registry,
          steps,
          (entry) => this.#decodedOf(entry),
          (entry) => this.#recordedOf(entry),
          verdict,
        )
      }
    this.#policy?.assertPasses(verdict, same !== undefined, { ahead: ahead.windows, other })
    if (same) {
      this.#parts.store.flush()
      return same
    }
    verdict.assertAge()
    assertNonce(state, verdict, ahead.nonce)
    assertExpiry(state, verdict, this.#parts.store.seconds())
    assertLeftover(state, verdict)
    assertBudget(state, verdict, this.#parts.store.clock(), { ahead: ahead.charges, other })
    return null
  }

  /** Records the step durably, before a signature can exist. */
  admit(verdict: GovernedVerdict, session: Session): StepEntry {
    return this.admitAll([verdict], [session])[0]!
  }

  /** Records the steps of a run: all of them or none, by one disk flush. */
  admitAll(
    verdicts: readonly GovernedVerdict[],
    sessions: readonly Session[],
    other: OtherCharges = NO_OTHERS,
  ): StepEntry[] {
    const existing = this.assertAllAllowed(verdicts, other)
    const { store } = this.#parts
    const entries = verdicts.map((verdict, at): NewEntry[] => {
      const [same, session] = [existing[at], sessions[at]!]
      return same
        ? [
            ...this.#chargedAgain(verdict, same),
            { kind: 'session', body: { step_height: same.height, ...session } },
          ]
        : this.#entriesOf(verdict, session)
    })
    const appended = store.appendAll(entries.flat())
    let end = 0
    return verdicts.map((_, at) => {
      end += entries[at]!.length
      return existing[at] ?? store.state.stepAt.get(appended[end - 1]!.height)!
    })
  }

  #entriesOf(verdict: Verdict, session: Session): NewEntry[] {
    const { store } = this.#parts
    const entries: NewEntry[] = []
    for (const seen of verdict.seen) {
      if (!store.state.seen.has(State.requestKey(seen.api_key, seen.nonce)))
        entries.push({ kind: 'seen', body: { ...seen } })
    }
    if (verdict.rule && !store.state.rules.has(verdict.rule.rule))
      entries.push({ kind: 'rule', body: { ...verdict.rule } })
    if (verdict.voids.some((name) => !store.state.voids.has(name))) {
      entries.push({
        kind: 'void',
        body: {
          keys: verdict.voids,
          transaction_id: verdict.intent?.transaction_id ?? null,
          signed_hashes: [],
        },
      })
    }
    entries.push({ kind: 'step', body: { ...stepOf(verdict), ...session } })
    return entries
  }

  /** Charges of a recorded transaction that is signed under another rule of the policy, or late. */
  #chargedAgain(verdict: Verdict, { signed }: StepEntry): NewEntry[] {
    if (verdict.policy === null || signed) return []
    const charges = this.#policy?.uncovered(verdict) ?? []
    return charges.length === 0
      ? []
      : [{ kind: 'charged', body: chargedBy(verdict, verdict.policy, charges) }]
  }

  /**
   * Returns the data that a platform without its database needs to continue with the recorded
   * transaction.
   */
  #recordedOf(entry: StepEntry): Record<string, unknown> {
    const { record } = this.#parts.store
    const step = record.read(entry.height)
    const signed = entry.signed && record.readAs(entry.signed.height, 'signed').body
    return {
      unsigned: step.kind === 'step' ? step.body.unsigned : null,
      signatures: signed?.signatures ?? null,
      signed: signed && { raw: signed.raw, hash: signed.hash },
    }
  }

  #decodedOf(entry: StepEntry): DecodedTransaction {
    return decodeDecoded(this.#parts.store.stepBodyAt(entry.height).decoded)
  }
}

const largestOf = (one: bigint | null, two: bigint | null): bigint | null =>
  one === null || (two !== null && two > one) ? two : one

/** Returns the content of a step's entry, without its session. */
function stepOf(verdict: Verdict): Omit<Body<'step'>, keyof Session> {
  const { unsigned, workspace, purpose } = verdict.order
  return {
    step: verdict.step,
    purpose: purpose.kind,
    workspace,
    key_id: verdict.key.key_id,
    intent: verdict.intent?.key ?? null,
    content: verdict.intent?.content ?? null,
    transaction_id: verdict.intent?.transaction_id ?? null,
    ...(verdict.beside.length === 0
      ? {}
      : {
          beside: verdict.beside.map(({ step, intent: { key: intent, ...named } }) => ({
            step,
            intent,
            ...named,
          })),
        }),
    unsigned_hash: verdict.unsignedHash,
    unsigned: {
      network: unsigned.network,
      bytes: unsigned.bytes,
      inputs: unsigned.inputs.map(({ path }) => ({ path })),
      change: unsigned.change,
    },
    decoded: encodeDecoded(verdict.decoded),
    consumes: verdict.decoded.consumes,
    account: accountOf(verdict),
    nonce: verdict.decoded.nonce?.toString() ?? null,
    // Recorded so that a deletion of the rule can name the forward.
    rule: purpose.kind === 'forward' ? (verdict.rule?.rule ?? null) : null,
    fuelled: verdict.fuelled && {
      ...verdict.fuelled,
      network: verdict.network.code,
      amount: verdict.fuelled.amount.toString(),
    },
    charges: verdict.charges.map(({ budget, amount }) => ({
      budget,
      amount: amount.toString(),
    })),
    ...(verdict.policy ? { policy: recordedPolicy(verdict.policy) } : {}),
  }
}
