import { assertAct, assetOf, type Act } from '../act.ts'
import { PolicyError } from '../error.ts'
import { whyUnreachable } from './approvals.ts'
import type { CompiledRule, Need, Policy } from './compile.ts'
import { addressKey, type Subject } from './conditions.ts'
import { metersOf, type Charge, type Meter } from './windows.ts'

/** A rule whose conditions hold for an act, with the sums to which its windows charge the act. */
export interface PreparedRule {
  readonly rule: CompiledRule
  readonly meters: readonly Meter[]
}

/**
 * What a document says about an act whatever the time, the windows and the approvals are. It is
 * computed from the document and the act alone, so it holds as long as both are the same.
 */
export interface PreparedAct {
  readonly policy: Policy
  readonly subject: Subject
  /** Rules whose conditions hold, sorted by ID. */
  readonly rules: Readonly<Record<CompiledRule['effect'], readonly PreparedRule[]>>
  /** Returns why quorums can never be reached; null if they can ({@link whyUnreachable}). */
  readonly whyUnreachable: (needs: readonly Need[]) => string | null
}

/**
 * Returns the person that owns the API key of an act: whom the document lists with the key. If the
 * document lists it for no person, the person of the key's enrolment, if the document has that
 * person. Null: the key has no owner.
 */
export function ownerOf(policy: Policy, { api_key, person }: Pick<Act, 'api_key' | 'person'>) {
  const listed = policy.owners.get(api_key)
  if (listed !== undefined) return listed
  return person !== undefined && policy.people.has(person) ? person : null
}

/** Derives from an act what conditions and windows need. */
export function subjectOf(policy: Policy, act: Act): Subject {
  assertAct(policy.registry, act)
  if (act.workspace !== policy.document.workspace)
    throw new PolicyError('ACT', 'workspace', `must be ${policy.document.workspace}`)
  const asset = assetOf(policy.registry, act.asset, 'asset')
  const { address, tag } = policy.registry.splitAddress(act.network, act.to.address) ?? act.to
  const paymentKey = policy.registry.paymentKey(act.network, act.to.address)
  return {
    act,
    owner: ownerOf(policy, act),
    asset,
    feeAsset: assetOf(policy.registry, asset.fee_asset, 'asset'),
    countsTankFees: policy.document.fees === undefined,
    paymentKey,
    tag,
    listKeys: {
      address: addressKey(act.network, address),
      paymentKey: addressKey(act.network, paymentKey),
    },
  }
}

/**
 * Evaluates what depends on the document and the act only. The act must not be changed afterwards.
 * @throws PolicyError `ACT` or `UNKNOWN_ASSET` if the act contradicts itself
 */
export function prepareAct(policy: Policy, act: Act): PreparedAct {
  const subject = subjectOf(policy, act)
  const holding = (rules: readonly CompiledRule[]): PreparedRule[] =>
    rules
      .filter(({ conditions }) => conditions.every((condition) => condition(subject) === null))
      .map((rule) => ({
        rule,
        meters: rule.windows.flatMap((window) => metersOf(window, subject)),
      }))
  const { allow, deny, limit } = policy.rules
  const results = new Map<string, string | null>()
  return {
    policy,
    subject,
    rules: {
      allow: holding(allow),
      ['require']: holding(policy.rules['require']),
      deny: holding(deny),
      limit: holding(limit),
    },
    whyUnreachable(needs) {
      const key = JSON.stringify(needs)
      const known = results.get(key)
      if (known !== undefined) return known
      const why = whyUnreachable(policy, needs, subject.owner)
      results.set(key, why)
      return why
    },
  }
}

/**
 * Returns the charges of an act that passes by a rule: the windows of that rule, and those of every
 * `limit` that the act matches. A node writes them down before it signs, and never takes them back,
 * whatever becomes of the transaction.
 * @param via ID of an `allow` rule
 * @throws PolicyError `ACT` if there is no such rule
 */
export function chargesOfPrepared({ policy, subject, rules }: PreparedAct, via: string): Charge[] {
  const way = policy.rules.allow.find(({ id }) => id === via)
  if (way === undefined) throw new PolicyError('ACT', 'via', `${via} is not an allow rule`)
  const prepared = rules.allow.find(({ rule }) => rule === way)
  const meters = prepared?.meters ?? way.windows.flatMap((window) => metersOf(window, subject))
  return [...meters, ...rules.limit.flatMap((limit) => limit.meters)].map(
    ({ key, hours, amounts }) => ({ key, hours, amounts }),
  )
}

/** Like {@link chargesOfPrepared}. @throws PolicyError `ACT` or `UNKNOWN_ASSET` */
export const chargesOf = (policy: Policy, act: Act, via: string): Charge[] =>
  chargesOfPrepared(prepareAct(policy, act), via)
