import { parseUnits } from '../amounts.ts'
import type { Quorum } from '../evaluation/compile.ts'
import type {
  AllowRule,
  Destinations,
  LimitRule,
  Match,
  Rule,
  SubAccounts,
  Window,
} from '../document/rules.ts'
import { LIMITS } from '../limits.ts'

// Whether one rule includes another. Each function returns true only if that is certain.

type Amounts = Readonly<Record<string, string>>

/** Decimals that hold every amount of a document. */
const FINE = 30
const compare = (a: string, b: string): number => {
  const [x, y] = [parseUnits(a, FINE, ''), parseUnits(b, FINE, '')]
  return x < y ? -1 : x > y ? 1 : 0
}
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
const subset = (inner: readonly string[], outer: readonly string[]): boolean => {
  const all = new Set(outer)
  return inner.every((each) => all.has(each))
}

/** A condition that is absent includes everything. */
function includes<T>(
  outer: T | undefined,
  inner: T | undefined,
  contains: (outer: T, inner: T) => boolean,
): boolean {
  if (outer === undefined) return true
  return inner !== undefined && contains(outer, inner)
}

const listIncludes = (
  outer: readonly string[] | undefined,
  inner: readonly string[] | undefined,
): boolean => includes(outer, inner, (a, b) => subset(b, a))

const accountsInclude = (outer: SubAccounts, inner: SubAccounts): boolean => {
  if (Array.isArray(outer)) return Array.isArray(inner) && subset(inner, outer)
  const { prefix } = outer
  return Array.isArray(inner)
    ? inner.every((each) => each.startsWith(prefix))
    : inner.prefix.startsWith(prefix)
}

function destinationsInclude(outer: 'any' | Destinations, inner: 'any' | Destinations): boolean {
  if (outer === 'any') return true
  if (inner === 'any') return false
  const listed = (inner.addresses ?? []).every((entry) =>
    (outer.addresses ?? []).some(
      (each) =>
        each.network === entry.network &&
        each.address === entry.address &&
        (each.any_tag === true || (each.tag === entry.tag && entry.any_tag !== true)),
    ),
  )
  if (inner.own === undefined) return listed
  return listed && (outer.own === 'workspace' || outer.own === inner.own)
}

/** Returns whether every act that `inner` matches is matched by `outer` too. */
export function matchIncludes(outer: Match, inner: Match): boolean {
  const assets = (match: Match) => (match.assets === 'any' ? undefined : match.assets)
  return (
    listIncludes(outer.action, inner.action) &&
    listIncludes(assets(outer), assets(inner)) &&
    listIncludes(outer.networks, inner.networks) &&
    listIncludes(outer.api_keys, inner.api_keys) &&
    listIncludes(outer.people, inner.people) &&
    includes(outer.sub_accounts, inner.sub_accounts, accountsInclude) &&
    // What the outer rule excludes must be excluded by the inner rule too.
    includes(outer.sub_accounts_not, inner.sub_accounts_not, (a, b) => accountsInclude(b, a)) &&
    includes(outer.to, inner.to, destinationsInclude)
  )
}

/**
 * Returns false if two rules certainly never match the same act.
 * @param kind of the second rule: one that restricts matches all addresses of the same payment key, so
 *   its destinations are not compared
 */
export function mayMeet(a: Match, b: Match, kind: 'allow' | 'restriction'): boolean {
  const meet = (x: readonly string[] | undefined, y: readonly string[] | undefined): boolean =>
    x === undefined || y === undefined || x.some((each) => y.includes(each))
  const assets = (match: Match) => (match.assets === 'any' ? undefined : match.assets)
  return (
    meet(a.action, b.action) &&
    meet(assets(a), assets(b)) &&
    meet(a.networks, b.networks) &&
    meet(a.api_keys, b.api_keys) &&
    meet(a.people, b.people) &&
    accountsMeet(a.sub_accounts, b.sub_accounts) &&
    (kind === 'restriction' || destinationsMeet(a.to, b.to))
  )
}

/** Returns false if no sub-account is in both. */
function accountsMeet(a: SubAccounts | undefined, b: SubAccounts | undefined): boolean {
  if (a === undefined || b === undefined) return true
  if (Array.isArray(a))
    return a.some((each) => (Array.isArray(b) ? b.includes(each) : each.startsWith(b.prefix)))
  if (Array.isArray(b)) return accountsMeet(b, a)
  return a.prefix.startsWith(b.prefix) || b.prefix.startsWith(a.prefix)
}

/** Returns false if no destination is in both. An own address may be any address. */
function destinationsMeet(a: Match['to'], b: Match['to']): boolean {
  const listOf = (to: Match['to']) =>
    to === undefined || to === 'any' || to.own !== undefined ? null : (to.addresses ?? [])
  const [x, y] = [listOf(a), listOf(b)]
  if (x === null || y === null) return true
  const isAny = (entry: (typeof x)[number]) => entry.any_tag === true
  return x.some((one) =>
    y.some(
      (other) =>
        one.network === other.network &&
        one.address === other.address &&
        (isAny(one) || isAny(other) || one.tag === other.tag),
    ),
  )
}

/** Every asset of the inner map is in the outer one, with a maximum that is not smaller. */
const maximaInclude = (outer: Amounts | undefined, inner: Amounts | undefined): boolean =>
  includes(outer, inner, (a, b) =>
    Object.entries(b).every(
      ([asset, max]) => Object.hasOwn(a, asset) && compare(a[asset] as string, max) >= 0,
    ),
  )
const minimaInclude = (outer: Amounts | undefined, inner: Amounts | undefined): boolean =>
  includes(outer, inner, (a, b) =>
    Object.entries(b).every(
      ([asset, min]) => Object.hasOwn(a, asset) && compare(a[asset] as string, min) <= 0,
    ),
  )

/** A window that names one more asset may count fees in it that it did not count before. */
const namesNoMore = (outer: Amounts | undefined, inner: Amounts | undefined): boolean =>
  includes(outer, inner, (a, b) => Object.keys(a).every((asset) => Object.hasOwn(b, asset)))

/** Returns whether people who meet the inner quorums meet the outer ones too. */
export function quorumsInclude(outer: Quorum, inner: Quorum): boolean {
  const { approvals: needed = [] } = outer
  if (needed.length === 0) return true
  const isEasier = needed.every(({ group, k }) =>
    (inner.approvals ?? []).some((each) => each.group === group && each.k >= k),
  )
  const time = ({ approval_s = LIMITS.approvalDefaultS }: Quorum): number => approval_s
  return (
    isEasier && (outer.initiator === true || inner.initiator !== true) && time(outer) >= time(inner)
  )
}

/** Returns whether every act that fits in the inner windows fits in the outer windows too. */
function windowsInclude(outer: readonly Window[], inner: readonly Window[]): boolean {
  return outer.every((window) =>
    inner.some(
      (each) =>
        each.name === window.name &&
        each.per === window.per &&
        each.hours >= window.hours &&
        maximaInclude(window.max, each.max) &&
        namesNoMore(window.max, each.max) &&
        (window.count === undefined || (each.count !== undefined && window.count >= each.count)) &&
        compare(window.share ?? '0.25', each.share ?? '0.25') >= 0,
    ),
  )
}

/**
 * Returns whether every act that `inner` lets through is let through by `outer`.
 * @param windows of one rule in two documents can be compared; those of two rules count separately,
 *   so the outer rule must have none
 */
export function allowIncludes(
  outer: AllowRule,
  inner: AllowRule,
  windows: 'same rule' | 'two rules',
): boolean {
  const fitsWindows =
    outer.windows === undefined ||
    (windows === 'same rule' && windowsInclude(outer.windows, inner.windows ?? []))
  return (
    matchIncludes(outer.match, inner.match) &&
    maximaInclude(outer.amount?.max, inner.amount?.max) &&
    minimaInclude(outer.amount?.min, inner.amount?.min) &&
    maximaInclude(outer.fee_max, inner.fee_max) &&
    fitsWindows &&
    quorumsInclude(outer, inner)
  )
}

const aboveIncludes = (outer: LimitRule['above'], inner: LimitRule['above']): boolean =>
  inner === 'deny' || (outer !== 'deny' && quorumsInclude(outer, inner))

/**
 * Returns whether a rule that restricts lets through, in its `outer` version, everything that it
 * lets through in its `inner` version.
 */
export function restrictionIncludes(outer: Rule, inner: Rule): boolean {
  // The version that matches less restricts less.
  if (outer.effect !== inner.effect || !matchIncludes(inner.match, outer.match)) return false
  if (outer.effect === 'limit' && inner.effect === 'limit')
    return windowsInclude(outer.windows, inner.windows) && aboveIncludes(outer.above, inner.above)
  const amountOf = (rule: Rule) => ('amount' in rule ? rule.amount : undefined)
  const isNarrowed = amountOf(inner) === undefined || same(amountOf(outer), amountOf(inner))
  if (outer.effect === 'require' && inner.effect === 'require')
    return isNarrowed && quorumsInclude(outer, inner)
  return outer.effect === 'deny' && isNarrowed
}
