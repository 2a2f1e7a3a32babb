import { assetOf } from '../act.ts'
import { formatUnits } from '../amounts.ts'
import type { Policy } from './compile.ts'
import type { Subject } from './conditions.ts'
import type { PreparedRule } from './prepare.ts'
import {
  readSum,
  sumOfUses,
  type Charge,
  type Meter,
  type Reading,
  type Use,
  type WindowSum,
} from './windows.ts'

/** What is needed to measure an act. */
export interface WindowContext {
  /** Unix seconds. */
  readonly now_s: number
  /**
   * Returns what counts in a sum, from the records of both nodes of a pair
   * (`combineUses`).
   */
  readonly usesOf: (charge: Charge) => readonly Use[]
  /**
   * Returns the same as {@link sumOfUses} for the uses of a sum, from running sums. Absent: the uses
   * are added up. Then `usesOf` is only called for a sum into which the act does not fit.
   */
  readonly sumOf?: (charge: Charge, step: string) => WindowSum
}

/** State of one limit of a window, with amounts as decimals in the asset's unit. */
export interface WindowState {
  readonly rule: string
  readonly name: string
  /** Null: the number of acts. */
  readonly asset: string | null
  /** Part of one sub-account in a window of the whole workspace. */
  readonly share: boolean
  /** Without this act. */
  readonly used: string
  /** Null: the window does not name the asset. */
  readonly max: string | null
  readonly fits: boolean
  /** Unix seconds from which the act would fit; null if it fits, or if it never does. */
  readonly frees_at: number | null
}

/** A reading with the sum that it is of. */
interface Measurement {
  readonly meter: Meter
  readonly reading: Reading
}

/** An act measured against the windows of one rule. */
export interface Measured {
  readonly measurements: readonly Measurement[]
  /** Reasons of the windows in which the act does not fit. */
  readonly full: readonly string[]
}

/** Formats an amount in the asset's unit. @param asset null: a number of acts */
const textOf = ({ registry }: Policy, asset: string | null, amount: bigint): string =>
  asset === null ? amount.toString() : formatUnits(amount, assetOf(registry, asset, '').decimals)

/** Measures an act against the windows of a rule whose conditions hold. */
export function measure(
  policy: Policy,
  { meters }: PreparedRule,
  { act: { step } }: Subject,
  context: WindowContext,
): Measured {
  const measurements: Measurement[] = []
  const full: string[] = []
  for (const meter of meters) {
    const uses = (): readonly Use[] => context.usesOf(meter)
    const sum = context.sumOf?.(meter, step) ?? sumOfUses(uses(), step, meter.hours)
    for (const reading of readSum(meter, step, sum, uses)) {
      measurements.push({ meter, reading })
      if (reading.frees_in_s !== 0) full.push(whyFull(policy, { meter, reading }))
    }
  }
  return { measurements, full }
}

function whyFull(policy: Policy, { meter, reading }: Measurement): string {
  const { asset, max, used, added } = reading
  const { window, isShare } = meter
  const label = `windows.${window.name}${isShare ? ' (share of the sub-account)' : ''}`
  const unit = asset ?? 'acts'
  if (max === null) return `${label}: does not name ${unit}, which also leaves the wallet`
  const [usedText, limit, addedText] = [used, max, added].map((units) =>
    textOf(policy, asset, units),
  )
  return `${label}: ${usedText} of ${limit} ${unit} are used, and ${addedText} more do not fit`
}

/** Describes measurements. @param now_s Unix seconds at which they were made */
export const describeWindows = (
  policy: Policy,
  { measurements }: Measured,
  now_s: number,
): WindowState[] =>
  measurements.map(
    ({ meter: { window, isShare }, reading: { asset, used, max, frees_in_s } }): WindowState => ({
      rule: window.rule,
      name: window.name,
      asset,
      share: isShare,
      used: textOf(policy, asset, used),
      max: max === null ? null : textOf(policy, asset, max),
      fits: frees_in_s === 0,
      frees_at: frees_in_s === null || frees_in_s === 0 ? null : now_s + frees_in_s,
    }),
  )
