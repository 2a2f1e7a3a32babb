import type { Act } from '../src/act.ts'
import type { Rule, SubAccounts, Window } from '../src/document/rules.ts'
import type { PolicyDocument } from '../src/document/shape.ts'
import type { Charge, Use } from '../src/evaluation/windows.ts'
import type { EvaluationContext } from '../src/evaluation/evaluate.ts'
import { registry } from './registry.ts'

// A second evaluator, which reads the document as it is: no preparation, no shared code, and
// exhaustive search in place of algorithms. Tests compare its results with those of `evaluate`.

/** Reads a decimal in units of 1e-30, so that all assets have one scale. */
const fine = (text: string): bigint => {
  const point = text.indexOf('.')
  const digits = point < 0 ? '' : text.slice(point + 1)
  return BigInt((point < 0 ? text : text.slice(0, point)) + (digits + '0'.repeat(30)).slice(0, 30))
}
const fineOf = (units: bigint, asset: string): bigint =>
  units * 10n ** BigInt(30 - (registry.asset(asset)?.decimals ?? 0))

const isOne = (accounts: SubAccounts, name: string): boolean =>
  Array.isArray(accounts)
    ? accounts.some((each) => each === name)
    : name.slice(0, accounts.prefix.length) === accounts.prefix

function ownerOf(document: PolicyDocument, act: Act): string | null {
  for (const person of document.people)
    for (const key of person.api_keys) if (key === act.api_key) return person.id
  for (const person of document.people) if (person.id === act.person) return person.id
  return null
}

function destinationFits({ match, effect }: Rule, act: Act): boolean {
  if (match.to === undefined || match.to === 'any') return true
  const strict = effect === 'allow'
  // An address of Stellar that contains its tag: M, the tag, x, and the account.
  const isMuxed = act.network === 'XLM' && /^M\dx/.test(act.to.address)
  const [address, tag] = isMuxed
    ? [act.to.address.slice(3), act.to.address.slice(1, 2)]
    : [act.to.address, act.to.tag]
  for (const entry of match.to.addresses ?? []) {
    if (entry.network !== act.network) continue
    const same = strict
      ? entry.address === address
      : registry.paymentKey(act.network, entry.address) ===
        registry.paymentKey(act.network, act.to.address)
    if (!same) continue
    if (entry.any_tag) return true
    if (entry.tag === undefined ? !strict || tag === null : entry.tag === tag) return true
  }
  if (match.to.own === undefined || act.to.own === null) return false
  if (act.to.own === 'unknown') return !strict
  if (strict && tag !== null) return false
  return match.to.own === 'workspace' || act.to.own === 'sub_account'
}

function amountFits(rule: Rule, act: Act): boolean {
  const range = 'amount' in rule ? rule.amount : undefined
  const unnamed = rule.effect !== 'allow'
  const amount = fineOf(act.amount, act.asset)
  const [min, max] = [range?.min, range?.max].map((map) => map && (map[act.asset] ?? null))
  if (min === null && !unnamed) return false
  if (max === null && !unnamed) return false
  return !(min && amount < fine(min)) && !(max && amount > fine(max))
}

function matches(document: PolicyDocument, rule: Rule, act: Act): boolean {
  const { match } = rule
  const owner = ownerOf(document, act)
  if (match.action && !match.action.includes(act.action)) return false
  if (match.assets && match.assets !== 'any' && !match.assets.includes(act.asset)) return false
  if (match.networks && !match.networks.includes(act.network)) return false
  if (match.api_keys && !match.api_keys.includes(act.api_key)) return false
  if (match.people && owner === null && rule.effect === 'allow') return false
  if (match.people && owner !== null && !match.people.includes(owner)) return false
  if (match.sub_accounts && !isOne(match.sub_accounts, act.sub_account)) return false
  if (match.sub_accounts_not && isOne(match.sub_accounts_not, act.sub_account)) return false
  if (!destinationFits(rule, act) || !amountFits(rule, act)) return false
  if (rule.effect !== 'allow' || rule.fee_max === undefined) return true
  const coin = registry.asset(act.asset)?.fee_asset ?? ''
  const limit = rule.fee_max[coin]
  return limit !== undefined && fineOf(act.fee.max, coin) <= fine(limit)
}

/** Sums of a window, and for the workspace's windows the share of the sub-account. */
function sumsOf(rule: Rule, window: Window, act: Act): { key: string; factor: bigint }[] {
  const by = {
    workspace: [],
    sub_account: [act.sub_account],
    api_key: [act.api_key],
    destination: [act.network, registry.paymentKey(act.network, act.to.address)],
  }[window.per]
  const sums = [{ key: JSON.stringify([rule.id, window.name, window.per, ...by]), factor: 10_000n }]
  const share = BigInt(Math.round(Number(window.share ?? '0.25') * 10_000))
  if (window.per === 'workspace' && share < 10_000n)
    sums.push({
      key: JSON.stringify([rule.id, window.name, 'share', act.sub_account]),
      factor: share,
    })
  return sums
}

/** Recounts what a sum contains together with an act: the largest amount of each step. */
function total(uses: readonly Use[], hours: number, act: Act, asset: string | null, added: bigint) {
  const recent = uses.filter(({ age_s }) => age_s < hours * 3600 + 121)
  const steps = [...new Set([...recent.map(({ step }) => step), act.step])]
  let sum = 0n
  for (const step of steps) {
    let most = step === act.step ? added : asset === null ? 1n : 0n
    for (const use of recent)
      if (use.step === step && asset !== null && (use.amounts.get(asset) ?? 0n) > most)
        most = use.amounts.get(asset) ?? 0n
    sum += most
  }
  return sum
}

/** What a window counts of an act: `[asset, units]`, with the fee in the coin that pays it. */
function movedIn(document: PolicyDocument, window: Window, act: Act): [string, bigint][] {
  const asset = registry.asset(act.asset)
  if (asset === undefined) return []
  const isNamed = Object.keys(window.max ?? {}).includes(asset.fee_asset)
  const isFree = !asset.wallet_pays_fee && (document.fees === 'wallet' || !isNamed)
  const fee = isFree ? 0n : act.fee.max
  if (asset.fee_asset === act.asset) return [[act.asset, act.amount + fee]]
  return fee === 0n
    ? [[act.asset, act.amount]]
    : [
        [act.asset, act.amount],
        [asset.fee_asset, fee],
      ]
}

function windowsFit(
  document: PolicyDocument,
  rule: Rule,
  act: Act,
  { usesOf }: EvaluationContext,
): boolean {
  const windows = ('windows' in rule && rule.windows) || []
  if (registry.asset(act.asset) === undefined) return false
  return windows.every((window) =>
    sumsOf(rule, window, act).every(({ key, factor }) => {
      const moved = new Map(movedIn(document, window, act))
      const uses = usesOf({ key, hours: window.hours, amounts: moved } as Charge)
      if (window.count !== undefined) {
        const max = (BigInt(window.count) * factor) / 10_000n
        if (total(uses, window.hours, act, null, 1n) > max) return false
      }
      return (
        window.max === undefined ||
        [...moved].every(([name, amount]) => {
          const limit = window.max?.[name]
          if (limit === undefined) return false
          const scale = 10n ** BigInt(30 - (registry.asset(name)?.decimals ?? 0))
          const units = ((fine(limit) / scale) * factor) / 10_000n
          return total(uses, window.hours, act, name, amount) <= units
        })
      )
    }),
  )
}

interface NaiveNeed {
  group: string
  k: number
  initiator: boolean
  approval_s: number
}

/** Tries every way to give each person one group or none. */
export function canAssign(
  people: readonly string[],
  needs: readonly { readonly k: number }[],
  mayCount: (person: string, need: number) => boolean,
): boolean {
  const [person, ...rest] = people
  if (needs.every(({ k }) => k <= 0)) return true
  if (person === undefined) return false
  return (
    needs.some(
      ({ k }, at) =>
        k > 0 &&
        mayCount(person, at) &&
        canAssign(
          rest,
          needs.map((need, n) => ({ k: n === at ? need.k - 1 : need.k })),
          mayCount,
        ),
    ) || canAssign(rest, needs, mayCount)
  )
}

function quorumsOf(document: PolicyDocument, rules: readonly Rule[]): NaiveNeed[] {
  return Object.keys(document.groups).flatMap((group) => {
    const found = rules.flatMap((rule) => {
      const quorum =
        rule.effect === 'limit' ? (rule.above === 'deny' ? {} : rule.above) : (rule as object)
      const {
        approvals = [],
        approval_s = 86_400,
        initiator = false,
      } = quorum as Partial<{
        approvals: { group: string; k: number }[]
        approval_s: number
        initiator: boolean
      }>
      return approvals
        .filter((each) => each.group === group)
        .map(({ k }) => ({ k, approval_s, initiator }))
    })
    if (found.length === 0) return []
    return [
      {
        group,
        k: Math.max(...found.map(({ k }) => k)),
        initiator: found.every(({ initiator }) => initiator),
        approval_s: Math.min(...found.map(({ approval_s }) => approval_s)),
      },
    ]
  })
}

/** Judges an act: `deny`, or whether the approvals of some way are complete. */
export function naiveEffect(
  document: PolicyDocument,
  act: Act,
  context: EvaluationContext,
): 'allow' | 'approve' | 'deny' {
  const { rules } = document
  const applying = rules.filter((rule) => matches(document, rule, act))
  const exceeded = applying.filter(
    (rule) => rule.effect === 'limit' && !windowsFit(document, rule, act, context),
  )
  if (applying.some(({ effect }) => effect === 'deny')) return 'deny'
  if (exceeded.some((rule) => rule.effect === 'limit' && rule.above === 'deny')) return 'deny'
  const added = [...exceeded, ...applying.filter(({ effect }) => effect === 'require')]
  const owner = ownerOf(document, act)
  let effect: 'approve' | 'deny' = 'deny'
  for (const rule of applying) {
    if (rule.effect !== 'allow' || !windowsFit(document, rule, act, context)) continue
    const needs = quorumsOf(document, [rule, ...added])
    if (needs.some(({ initiator }) => !initiator && owner === null)) continue
    if (needs.reduce((sum, { k }) => sum + k, 0) > 8) continue
    const isMember = (person: string, need: NaiveNeed): boolean =>
      (document.groups[need.group]?.includes(person) ?? false) &&
      (need.initiator || person !== owner)
    const all = document.people.map(({ id }) => id)
    if (!canAssign(all, needs, (person, at) => isMember(person, needs[at] as NaiveNeed))) continue
    const isMet = canAssign(all, needs, (person, at) => {
      const need = needs[at] as NaiveNeed
      return (
        isMember(person, need) &&
        context.approvals.some(
          ({ by, key, at: signed, expires }) =>
            by === person &&
            document.people.some(
              ({ id, keys }) => id === by && keys.some((each) => each.id === key),
            ) &&
            !context.suspended.has(`${by}/${key}`) &&
            signed - 60 <= context.now_s &&
            [expires, signed + need.approval_s, act.issued_at + 518_400].every(
              (end) => context.now_s < end,
            ),
        )
      )
    })
    if (isMet) return 'allow'
    effect = 'approve'
  }
  return effect
}
