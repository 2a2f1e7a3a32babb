import type { AllowRule, LimitRule, Rule, Window } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import type { PolicyAsset, PolicyRegistry } from '../registry.ts'
import { matchIncludes } from './containment.ts'
import { warning, type Finding } from './finding.ts'

/**
 * Assets that an `allow` can let through, as far as its lists and amounts state them; null: all
 * assets. Its amounts and windows must name an asset, so they are lists of assets too.
 */
function assetsOf({ match, amount, windows = [] }: AllowRule): readonly string[] | null {
  const maps = [amount?.min, amount?.max, ...windows.map(({ max }) => max)]
  const lists = [
    ...(match.assets === 'any' ? [] : [match.assets]),
    ...maps.flatMap((map) => (map === undefined ? [] : [Object.keys(map)])),
  ]
  const [first, ...others] = lists
  if (first === undefined) return null
  return first.filter((asset) => others.every((list) => list.includes(asset)))
}

/** Assets that an `allow` can let through on its networks; null: all assets of them. */
function reachable(rule: AllowRule, registry: PolicyRegistry): readonly PolicyAsset[] | null {
  const { networks } = rule.match
  return (
    assetsOf(rule)?.flatMap((name) => {
      const asset = registry.asset(name)
      return asset === undefined || networks?.includes(asset.network) === false ? [] : [asset]
    }) ?? null
  )
}

/** Windows that every act of an `allow` is charged to. */
function windowsOver(rule: AllowRule, rules: readonly Rule[]): readonly Window[] {
  const limits = rules.filter(
    (each): each is LimitRule => each.effect === 'limit' && matchIncludes(each.match, rule.match),
  )
  return [rule, ...limits].flatMap(({ windows = [] }) => windows)
}

/**
 * Acts whose fees nothing limits except the network's cap. Of a rule with approvals, people approve
 * the fee of each act, except of forwards, which they approve once.
 */
function isUnlimited(rule: AllowRule, document: PolicyDocument, registry: PolicyRegistry): boolean {
  if (rule.fee_max !== undefined) return false
  if (rule.approvals !== undefined && !rule.match.action.includes('forward')) return false
  const windows = windowsOver(rule, document.rules)
  if (windows.some(({ count }) => count !== undefined)) return false
  const assets = reachable(rule, registry)
  if (assets === null) return true
  return assets.some(
    ({ fee_asset, wallet_pays_fee }) =>
      (document.fees === 'wallet' && !wallet_pays_fee) ||
      !windows.some(({ max }) => max !== undefined && Object.hasOwn(max, fee_asset)),
  )
}

/** Fees that no rule limits, and the meaning of fees in earlier documents. */
export function findFeeFaults(document: PolicyDocument, registry: PolicyRegistry): Finding[] {
  const found = document.rules.flatMap((rule, at) =>
    rule.effect === 'allow' && isUnlimited(rule, document, registry)
      ? [
          warning(
            `rules[${at}]`,
            'FEES_UNLIMITED',
            `The rule ${rule.id} limits neither the fee nor the number of acts, so many small payments may burn fees up to the network's cap each. Add fee_max, a window with count, or a window that names the native coin.`,
          ),
        ]
      : [],
  )
  return document.fees === undefined
    ? found
    : [
        ...found,
        warning(
          'fees',
          'FEES_OF_WALLET_ONLY',
          'Fees that a gas tank pays count in no window, also if the wallet pays them after all. Remove the field, and name the native coins in the windows.',
        ),
      ]
}
