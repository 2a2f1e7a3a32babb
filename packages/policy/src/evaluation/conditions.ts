import { formatUnits, parseUnits } from '../amounts.ts'
import { assetOf, type Act } from '../act.ts'
import type { Destinations, Match, Rule, SubAccounts } from '../document/rules.ts'
import { PolicyError } from '../error.ts'
import type { PolicyAsset, PolicyRegistry } from '../registry.ts'

/** An act with what is derived from it once per evaluation. */
export interface Subject {
  readonly act: Act
  /** Person who owns the requesting API key; null if no person of the document lists it. */
  readonly owner: string | null
  readonly asset: PolicyAsset
  readonly feeAsset: PolicyAsset
  /** A fee that a gas tank pays counts in the windows that name the native coin. */
  readonly countsTankFees: boolean
  /** Payment key of the destination. */
  readonly paymentKey: string
  /** Tag of the destination, also if its address contains it. */
  readonly tag: string | null
  /** Key of the destination's account in lists of addresses, and that of its payment key. */
  readonly listKeys: { readonly address: string; readonly paymentKey: string }
}

/**
 * Returns null if the condition holds, or a function that states why it does not. A document has
 * many rules, and the text of few is needed.
 */
export type Condition = (subject: Subject) => (() => string) | null

/**
 * A condition that cannot be decided for an act keeps an `allow` from fitting, and lets every other
 * rule match. `narrows` is true for those other rules.
 */
interface Side {
  readonly narrows: boolean
  readonly registry: PolicyRegistry
}

/** Condition that a text is in a list. */
function inList(
  list: readonly string[] | undefined,
  label: string,
  textOf: (subject: Subject) => string,
): Condition[] {
  if (list === undefined) return []
  const set = new Set(list)
  const names = list.length <= 5 ? list.join(', ') : `the ${list.length} listed`
  return [
    (subject) => {
      const text = textOf(subject)
      return set.has(text) ? null : () => `${label}: ${text} is not one of ${names}`
    },
  ]
}

/** Condition on the owner of the requesting API key, which cannot be decided without an owner. */
function ownerConditions(people: readonly string[] | undefined, { narrows }: Side): Condition[] {
  const [isListed] = inList(people, 'people', ({ owner }) => owner ?? '')
  if (isListed === undefined) return []
  return [
    (subject) => {
      if (subject.owner !== null) return isListed(subject)
      return narrows ? null : () => 'people: the API key has no owner'
    },
  ]
}

/** Returns whether a sub-account is in a list, or begins with a prefix. */
function selects(accounts: SubAccounts): (name: string) => boolean {
  if (!Array.isArray(accounts)) return (name) => name.startsWith(accounts.prefix)
  const set = new Set(accounts)
  return (name) => set.has(name)
}

function subAccountConditions(
  match: Pick<Match, 'sub_accounts' | 'sub_accounts_not'>,
): Condition[] {
  const conditions: Condition[] = []
  if (match.sub_accounts !== undefined) {
    const isIn = selects(match.sub_accounts)
    conditions.push(({ act }) =>
      isIn(act.sub_account) ? null : () => `sub_accounts: ${act.sub_account} is not included`,
    )
  }
  if (match.sub_accounts_not !== undefined) {
    const isIn = selects(match.sub_accounts_not)
    conditions.push(({ act }) =>
      isIn(act.sub_account) ? () => `sub_accounts_not: ${act.sub_account} is excluded` : null,
    )
  }
  return conditions
}

/** Returns the key of an address in lists of addresses. */
export const addressKey = (network: string, address: string): string =>
  JSON.stringify([network, address])

/** Tags by address: `any`, or the tags of which one must match. Null is a payment without tag. */
type Tags = Map<string, 'any' | Set<string | null>>

/**
 * An entry of an `allow` without `tag` and `any_tag` matches only payments without tag. In other
 * rules it matches every tag, and all addresses of the same payment key.
 */
function tagsByAddress({ addresses = [] }: Destinations, { narrows, registry }: Side): Tags {
  const tags: Tags = new Map()
  for (const { network, address, tag, any_tag } of addresses) {
    const key = addressKey(network, narrows ? registry.paymentKey(network, address) : address)
    const isAny = any_tag === true || (narrows && tag === undefined)
    const known = tags.get(key)
    if (isAny || known === 'any') tags.set(key, 'any')
    else tags.set(key, (known ?? new Set()).add(tag ?? null))
  }
  return tags
}

function toCondition(to: Match['to'], side: Side): Condition[] {
  if (to === undefined || to === 'any') return []
  const tags = tagsByAddress(to, side)
  const isOwn = ({ act, tag }: Subject): boolean => {
    if (to.own === undefined || act.to.own === null) return false
    // What cannot be decided never widens. The account is own whatever the tag is, and the tag may
    // be that of a customer, so an `allow` must list it.
    if (act.to.own === 'unknown') return side.narrows
    if (tag !== null && !side.narrows) return false
    return to.own === 'workspace' || act.to.own === 'sub_account'
  }
  return [
    (subject) => {
      const { to: destination } = subject.act
      const { address, paymentKey } = subject.listKeys
      const listed = tags.get(side.narrows ? paymentKey : address)
      if (listed === 'any' || listed?.has(subject.tag) || isOwn(subject)) return null
      if (listed !== undefined) return () => `to: the tag ${subject.tag ?? '(none)'} is not listed`
      const own = to.own === undefined ? '' : ', and not an own address'
      return () => `to: ${destination.address} is not listed${own}`
    },
  ]
}

/** Reads a map of amounts into smallest units. */
export function unitsByAsset(
  amounts: Readonly<Record<string, string>> | undefined,
  registry: PolicyRegistry,
  path: string,
): ReadonlyMap<string, bigint> | null {
  if (amounts === undefined) return null
  return new Map(
    Object.entries(amounts).map(([asset, text]) => [
      asset,
      parseUnits(text, assetOf(registry, asset, `${path}.${asset}`).decimals, `${path}.${asset}`),
    ]),
  )
}

function bound(
  limits: ReadonlyMap<string, bigint> | null,
  side: Side,
  label: 'min' | 'max',
): Condition[] {
  if (limits === null) return []
  return [
    ({ act, asset: { decimals } }) => {
      const limit = limits.get(act.asset)
      if (limit === undefined)
        return side.narrows ? null : () => `amount: ${label} does not name ${act.asset}`
      if (label === 'max' ? act.amount <= limit : act.amount >= limit) return null
      return () => {
        const [amount, text] = [act.amount, limit].map((each) => formatUnits(each, decimals))
        return `amount: ${amount} ${act.asset} is ${label === 'max' ? 'above' : 'below'} ${text}`
      }
    },
  ]
}

function feeCondition(limits: ReadonlyMap<string, bigint> | null): Condition[] {
  if (limits === null) return []
  return [
    ({ act, asset: { fee_asset }, feeAsset: { decimals } }) => {
      const limit = limits.get(fee_asset)
      if (limit === undefined) return () => `fee_max: does not name ${fee_asset}`
      if (act.fee.max <= limit) return null
      return () => {
        const [fee, text] = [act.fee.max, limit].map((each) => formatUnits(each, decimals))
        return `fee_max: ${fee} ${fee_asset} is above ${text}`
      }
    },
  ]
}

/**
 * Refuses names that the registry does not have. A rule that names one would match nothing, which in
 * a rule that restricts would go unnoticed.
 */
function assertKnown({ match }: Rule, registry: PolicyRegistry, path: string): void {
  if (match.assets !== undefined && match.assets !== 'any')
    for (const [at, asset] of match.assets.entries())
      assetOf(registry, asset, `${path}.match.assets[${at}]`)
  const refuse = (at: string, message: string): never => {
    throw new PolicyError('UNKNOWN_ASSET', `${path}.match.${at}`, message)
  }
  for (const [at, network] of (match.networks ?? []).entries())
    if (!registry.hasNetwork(network))
      refuse(`networks[${at}]`, `${network} is not a network of the registry`)
  const listed = match.to === undefined || match.to === 'any' ? [] : (match.to.addresses ?? [])
  for (const [at, entry] of listed.entries()) {
    const where = `to.addresses[${at}]`
    const { network } = entry
    if (!registry.hasNetwork(network))
      refuse(`${where}.network`, `${network} is not a network of the registry`)
    const address = whyNoAddress(entry, registry)
    if (address !== null) refuse(`${where}.address`, address)
  }
}

type Entry = NonNullable<Destinations['addresses']>[number]

/** Returns why a rule cannot list an address; null if it can. */
function whyNoAddress({ network, address }: Entry, registry: PolicyRegistry): string | null {
  const split = registry.splitAddress(network, address)
  if (split !== null)
    return `contains a tag: write the classic address ${split.address}, with tag ${JSON.stringify(split.tag)}`
  const canonical = registry.canonicalAddress(network, address)
  if (canonical === undefined) return `is not a valid address of ${network}`
  return canonical === address ? null : `must be in its canonical form, ${canonical}`
}

/**
 * Returns the conditions of a rule except its windows and approvals. All of them must hold.
 * @param path of the rule, for errors
 * @throws PolicyError `AMOUNT` or `UNKNOWN_ASSET`
 */
export function conditionsOf(rule: Rule, registry: PolicyRegistry, path: string): Condition[] {
  assertKnown(rule, registry, path)
  const { match } = rule
  const side: Side = { narrows: rule.effect !== 'allow', registry }
  const range = 'amount' in rule ? rule.amount : undefined
  return [
    ...inList(match.action, 'action', ({ act }) => act.action),
    ...inList(match.assets === 'any' ? undefined : match.assets, 'assets', ({ act }) => act.asset),
    ...inList(match.networks, 'networks', ({ act }) => act.network),
    ...subAccountConditions(match),
    ...inList(match.api_keys, 'api_keys', ({ act }) => act.api_key),
    ...ownerConditions(match.people, side),
    ...toCondition(match.to, side),
    ...bound(unitsByAsset(range?.min, registry, `${path}.amount.min`), side, 'min'),
    ...bound(unitsByAsset(range?.max, registry, `${path}.amount.max`), side, 'max'),
    ...feeCondition(
      rule.effect === 'allow' ? unitsByAsset(rule.fee_max, registry, `${path}.fee_max`) : null,
    ),
  ]
}
