import { documentHash } from '../document/read.ts'
import type { Approvals, PersonKey } from '../document/people.ts'
import type { Rule } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { PolicyError } from '../error.ts'
import { LIMITS } from '../limits.ts'
import type { PolicyRegistry } from '../registry.ts'
import { conditionsOf, unitsByAsset, type Condition } from './conditions.ts'
import { compileWindow, type CompiledWindow } from './windows.ts'

/** A quorum that an act needs: `k` distinct people of a group. */
export interface Need {
  readonly group: string
  readonly k: number
  /** The owner of the requesting API key counts too. */
  readonly initiator: boolean
  /** Seconds after its `at` for which an approval counts. */
  readonly approval_s: number
  /**
   * Seconds after its `at` for which an approval that is recorded of a standing rule counts; null: as
   * long as the standing rule is valid.
   */
  readonly recorded_s: number | null
}

const EFFECTS: readonly Rule['effect'][] = ['allow', 'require', 'deny', 'limit']

/** A rule that is ready for evaluation. */
export interface CompiledRule {
  readonly id: string
  readonly effect: Rule['effect']
  readonly conditions: readonly Condition[]
  readonly windows: readonly CompiledWindow[]
  /** Least amounts of the rule by asset, in smallest units; null: any amount. They are conditions too. */
  readonly min: ReadonlyMap<string, bigint> | null
  /** Of an `allow` and a `require`; of a `limit` what an act above it needs. */
  readonly needs: readonly Need[]
  /** A `limit` that denies above its windows. */
  readonly deniesAbove: boolean
}

/** A document that is ready for evaluation. */
export interface Policy {
  readonly document: PolicyDocument
  /** Hash of the document. */
  readonly hash: string
  readonly registry: PolicyRegistry
  readonly rules: Readonly<Record<Rule['effect'], readonly CompiledRule[]>>
  /** Members of each group, sorted. */
  readonly groups: ReadonlyMap<string, readonly string[]>
  /** Keys of each person, by the key's ID. */
  readonly people: ReadonlyMap<string, ReadonlyMap<string, PersonKey>>
  /** Person whom the document lists as owner of an API key. */
  readonly owners: ReadonlyMap<string, string>
}

/** The fields of a rule that state who must approve. */
export interface Quorum {
  readonly approvals?: Approvals
  readonly approval_s?: number
  readonly initiator?: boolean
}

/**
 * Returns the quorums of a rule. Without `initiator` the requester's approval does not count.
 * @param recorded_s of {@link Need}
 */
export function needsOf(
  { approvals = [], approval_s, initiator = false }: Quorum,
  recorded_s: number | null = null,
): Need[] {
  return approvals.map(({ group, k }) => ({
    group,
    k,
    initiator,
    approval_s: approval_s ?? LIMITS.approvalDefaultS,
    recorded_s,
  }))
}

/**
 * Returns for how many seconds recorded approvals count above a limit: its shortest window. Otherwise,
 * people would approve once what the limit exists to make them approve again.
 */
const recordedOf = (windows: readonly CompiledWindow[]): number =>
  Math.min(...windows.map(({ hours }) => hours)) * 3600

/** Prepares one rule. @throws PolicyError `AMOUNT` or `UNKNOWN_ASSET` */
export function compileRule(rule: Rule, registry: PolicyRegistry, path: string): CompiledRule {
  const windows = ('windows' in rule ? rule.windows : undefined) ?? []
  const above = rule.effect === 'limit' ? rule.above : null
  const quorum: Quorum =
    rule.effect === 'allow' || rule.effect === 'require'
      ? rule
      : above === null || above === 'deny'
        ? {}
        : above
  const conditions = conditionsOf(rule, registry, path)
  const compiled = windows.map((window, at) =>
    compileWindow(rule.id, window, registry, `${path}.windows[${at}]`),
  )
  return {
    id: rule.id,
    effect: rule.effect,
    conditions,
    windows: compiled,
    min: unitsByAsset(
      'amount' in rule ? rule.amount?.min : undefined,
      registry,
      `${path}.amount.min`,
    ),
    needs: needsOf(quorum, above === null ? null : recordedOf(compiled)),
    deniesAbove: above === 'deny',
  }
}

/** Yields every group that the document names as a quorum, with its path. */
export function* namedGroups(document: PolicyDocument): Generator<{ group: string; path: string }> {
  const { change, stop, resume, enrolment, orders, rules } = document
  yield { group: change.veto, path: 'change.veto' }
  yield { group: stop.group, path: 'stop.group' }
  const of = function* (quorum: Quorum | undefined, path: string) {
    for (const [at, { group }] of (quorum?.approvals ?? []).entries())
      yield { group, path: `${path}.approvals[${at}].group` }
  }
  yield* of(change, 'change')
  yield* of(resume, 'resume')
  yield* of(enrolment, 'enrolment')
  yield* of(orders, 'orders')
  for (const [at, rule] of rules.entries()) {
    if (rule.effect === 'allow' || rule.effect === 'require') yield* of(rule, `rules[${at}]`)
    if (rule.effect === 'limit' && rule.above !== 'deny')
      yield* of(rule.above, `rules[${at}].above`)
  }
}

/** Yields every name of a person that the document does not define, with its path. */
export function* unknownPeople(document: PolicyDocument): Generator<{ id: string; path: string }> {
  const known = new Set(document.people.map(({ id }) => id))
  for (const [group, members] of Object.entries(document.groups))
    for (const [at, id] of members.entries())
      if (!known.has(id)) yield { id, path: `groups.${group}[${at}]` }
  for (const [number, { match }] of document.rules.entries())
    for (const [at, id] of (match.people ?? []).entries())
      if (!known.has(id)) yield { id, path: `rules[${number}].match.people[${at}]` }
}

/**
 * Prepares a document for evaluation: reads the amounts, and resolves groups and people.
 * @param document from `readDocument`
 * @throws PolicyError `AMOUNT`, `UNKNOWN_ASSET` or `UNKNOWN_GROUP` with the path of the field
 */
export function compile(document: PolicyDocument, registry: PolicyRegistry): Policy {
  for (const { group, path } of namedGroups(document))
    if (!Object.hasOwn(document.groups, group))
      throw new PolicyError('UNKNOWN_GROUP', path, `${group} is not a group of the document`)
  for (const { id, path } of unknownPeople(document))
    throw new PolicyError('UNKNOWN_GROUP', path, `${id} is not a person of the document`)
  const rules = Object.fromEntries(
    EFFECTS.map((effect): [Rule['effect'], CompiledRule[]] => [effect, []]),
  ) as Record<Rule['effect'], CompiledRule[]>
  for (const [at, rule] of document.rules.entries())
    rules[rule.effect].push(compileRule(rule, registry, `rules[${at}]`))
  // The order of rules has no influence, not even on the order of explanations.
  for (const each of Object.values(rules)) each.sort((a, b) => (a.id < b.id ? -1 : 1))
  return {
    document,
    hash: documentHash(document),
    registry,
    rules,
    groups: new Map(
      Object.entries(document.groups).map(([group, members]) => [group, [...members].sort()]),
    ),
    people: new Map(
      document.people.map(({ id, keys }) => [id, new Map(keys.map((key) => [key.id, key]))]),
    ),
    owners: new Map(
      document.people.flatMap(({ id, api_keys }) => api_keys.map((key) => [key, id] as const)),
    ),
  }
}
