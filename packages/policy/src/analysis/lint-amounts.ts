import type { Rule, Window } from '../document/rules.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { PolicyError } from '../error.ts'
import { compileRule } from '../evaluation/compile.ts'
import type { PolicyRegistry } from '../registry.ts'
import { error, type Finding } from './finding.ts'

type Amounts = Readonly<Record<string, string>>

/** Assets that a rule matches by name; null: all assets. */
const listedAssets = ({ match }: Rule): readonly string[] | null =>
  match.assets === undefined || match.assets === 'any' ? null : match.assets

/**
 * In a rule that restricts, an asset that its amounts do not name would match whatever its amount.
 * To make that visible, such a rule must list its assets and name each of them.
 */
function findUnnamed(rule: Rule, path: string): Finding[] {
  const maps: [string, Amounts | undefined][] =
    rule.effect === 'limit'
      ? rule.windows.map((window, at) => [`windows[${at}].max`, window.max])
      : rule.effect === 'allow'
        ? []
        : [
            ['amount.min', rule.amount?.min],
            ['amount.max', rule.amount?.max],
          ]
  const assets = listedAssets(rule)
  return maps.flatMap(([field, map]) => {
    if (map === undefined) return []
    const missing = assets?.find((asset) => !Object.hasOwn(map, asset))
    if (assets !== null && missing === undefined) return []
    const subject = missing ?? 'an asset that it does not name'
    return [
      error(
        `${path}.${field}`,
        'UNNAMED_ASSET',
        `The rule would restrict ${subject} whatever its amount. List the rule's assets in match.assets, and name each of them here.`,
      ),
    ]
  })
}

/** A window that names a token and not the coin in which the wallet pays its fee never has room. */
function findFeeCoins(window: Window, path: string, registry: PolicyRegistry): Finding[] {
  const { max } = window
  return Object.keys(max ?? {}).flatMap((name) => {
    const asset = registry.asset(name)
    if (asset === undefined || !asset.wallet_pays_fee) return []
    if (max === undefined || Object.hasOwn(max, asset.fee_asset)) return []
    return [
      error(
        `${path}.max`,
        'FEE_COIN',
        `The wallet pays the fee of ${name} in ${asset.fee_asset}, for which the window has no maximum. Name ${asset.fee_asset} too.`,
      ),
    ]
  })
}

/** A share so small that no act fits in it. */
function findEmptyShares(rule: Rule, path: string, registry: PolicyRegistry): Finding[] {
  const { windows } = compileRule(rule, registry, path)
  return windows.flatMap(({ name, max, count, share }, at) => {
    if (share === null) return []
    const part = (limit: bigint): bigint => (limit * share) / 10_000n
    const isEmpty =
      (count !== null && part(BigInt(count)) === 0n) ||
      [...(max ?? [])].some(([, limit]) => limit > 0n && part(limit) === 0n)
    return isEmpty
      ? [
          error(
            `${path}.windows[${at}]`,
            'EMPTY_SHARE',
            `The share of a sub-account in the window ${name} is zero, so no act fits. Raise the share or the limit.`,
          ),
        ]
      : []
  })
}

/** Assets, networks and addresses that the registry does not have, and amounts without a meaning. */
export function findAmountFaults(document: PolicyDocument, registry: PolicyRegistry): Finding[] {
  return document.rules.flatMap((rule, at) => {
    const path = `rules[${at}]`
    const windows = 'windows' in rule ? (rule.windows ?? []) : []
    const found = [
      ...findUnnamed(rule, path),
      ...windows.flatMap((window, number) =>
        findFeeCoins(window, `${path}.windows[${number}]`, registry),
      ),
    ]
    try {
      return [...found, ...findEmptyShares(rule, path, registry)]
    } catch (fault) {
      if (!(fault instanceof PolicyError)) throw fault
      return [...found, error(fault.path, fault.code, `The rule is refused: ${fault.message}.`)]
    }
  })
}
