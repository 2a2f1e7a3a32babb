import {
  limitsOf,
  readSumKey,
  type CompiledWindow,
  type Policy,
  type SumKey,
  type WindowSum,
} from '@custody/policy'
import { readWindowName, type Spending } from '../../store/spending.ts'
import { NO_OTHERS, type OtherCharges } from '../budget.ts'
import { sumOf } from './windows.ts'

/** Greatest number of sums that are returned: the most used ones. */
const USES_MAX = 200
/** Greatest number of sums that are added up in one call. */
const SUMS_MAX = 5000
/** Share of a limit is counted in millionths. */
const WHOLE = 1_000_000n

interface Records {
  own: Spending
  /** What counts besides, as far as this node knows each peer's. */
  others: readonly OtherCharges[]
  workspace: string
  /** The node's clock. */
  clockMs: number
}

type Sum = Pick<WindowSum, 'used' | 'count'>

/** One limit of a sum. Amounts are digits in the smallest unit. */
interface Reading {
  /** Null: the number of acts. */
  asset: string | null
  used: string
  max: string
}

/** What counts in one sum of a window now. */
interface WindowUse {
  rule: string
  window: string
  /** `share`: one sub-account's part of a window of the whole workspace. */
  per: SumKey['per']
  /** What the sum counts: nothing, a sub-account, an API key, or a network and a payment key. */
  of: readonly string[]
  hours: number
  readings: Reading[]
}

/** Returns the window of the document to which a sum belongs; undefined if there is none any more. */
function windowOf(windows: readonly CompiledWindow[], { rule, name, per }: SumKey) {
  return windows.find(
    (each) =>
      each.rule === rule &&
      each.name === name &&
      (per === 'share' ? each.share !== null : each.per === per),
  )
}

/** Returns the keys of the sums of a workspace that this node or a peer has charged. */
function* keysOf({ own, others, workspace }: Records): Generator<string> {
  const seen = new Set<string>()
  for (const spending of [own, ...others.map(({ recorded }) => recorded)])
    for (const name of spending.windowNames()) {
      const read = readWindowName(name)
      if (read.workspace !== workspace || seen.has(read.key)) continue
      seen.add(read.key)
      yield read.key
    }
}

/** Returns the larger amounts of two sums, and the larger number of acts. */
function larger(a: Sum, b: Sum): Sum {
  const used = new Map(a.used)
  for (const [asset, units] of b.used) if (units > (used.get(asset) ?? 0n)) used.set(asset, units)
  return { used, count: Math.max(a.count, b.count) }
}

/**
 * Adds up one sum. The records of any two nodes together contain all signatures, so the larger sum
 * with either peer is returned, by which a signature would be judged.
 */
function useOf(records: Records, window: CompiledWindow, key: string, sum: SumKey): WindowUse {
  const { hours } = window
  const { own, workspace, clockMs } = records
  const others = records.others.length > 0 ? records.others : [NO_OTHERS]
  const { used, count } = others
    .map((other): Sum => sumOf({ own, other, ahead: [], workspace, clockMs }, { key, hours }, ''))
    .reduce(larger)
  const limits = limitsOf(window, sum.per === 'share')
  const readings = [...(limits.max ?? [])].map(([asset, max]): Reading => ({
    asset,
    used: (used.get(asset) ?? 0n).toString(),
    max: max.toString(),
  }))
  if (limits.count !== null)
    readings.push({ asset: null, used: String(count), max: String(limits.count) })
  return { rule: sum.rule, window: sum.name, per: sum.per, of: sum.of, hours, readings }
}

/** Returns the largest used share of a sum's limits, in millionths. */
const shareOf = ({ readings }: WindowUse): bigint =>
  readings.reduce((largest, { used, max }) => {
    const share = max === '0' ? (used === '0' ? 0n : WHOLE) : (BigInt(used) * WHOLE) / BigInt(max)
    return share > largest ? share : largest
  }, 0n)

const isUsed = ({ readings }: WindowUse): boolean => readings.some(({ used }) => used !== '0')

/** Yields what counts in the sums of a policy, and whether sums were left off. */
function usesOf(policy: Policy, records: Records): { uses: WindowUse[]; isLeftOff: boolean } {
  const windows = Object.values(policy.rules)
    .flat()
    .flatMap((rule) => rule.windows)
  const uses: WindowUse[] = []
  let sums = 0
  for (const key of keysOf(records)) {
    const sum = readSumKey(key)
    const window = sum && windowOf(windows, sum)
    if (!sum || !window) continue
    if (sums++ >= SUMS_MAX) return { uses, isLeftOff: true }
    const use = useOf(records, window, key, sum)
    if (isUsed(use)) uses.push(use)
  }
  return { uses, isLeftOff: false }
}

/**
 * `POST /policy/windows`: what counts now in the windows of the policy in force, by this node's
 * record and by what it knows of its peers'. The most used sums come first.
 * @returns `left_off`: whether sums were left off
 */
export function windowUses(policy: Policy, records: Records): Record<string, unknown> {
  const { uses, isLeftOff } = usesOf(policy, records)
  const sorted = uses
    .map((use) => ({ use, share: shareOf(use) }))
    .sort((a, b) => (a.share < b.share ? 1 : a.share > b.share ? -1 : 0))
  return {
    policy: { number: policy.document.number, hash: policy.hash },
    windows: sorted.slice(0, USES_MAX).map(({ use }) => use),
    left_off: isLeftOff || sorted.length > USES_MAX,
  }
}

/** Share of a limit from which a sum is nearly full, in millionths. */
const NEARLY_FULL = 900_000n

/** Returns how many sums of a policy are nearly full, of at most the first 5,000. */
export const countNearlyFull = (policy: Policy, records: Records): number =>
  usesOf(policy, records).uses.filter((use) => shareOf(use) >= NEARLY_FULL).length
