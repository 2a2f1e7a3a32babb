import { assetOf } from '../act.ts'
import { formatUnits } from '../amounts.ts'
import type { CompiledRule, Policy } from './compile.ts'
import type { Subject } from './conditions.ts'
import { metersOf, readMeter, type Charge, type Meter, type Reading, type Use } from './windows.ts'

/** What is needed to measure an act. */
export interface WindowContext {
  /** Unix seconds. */
  readonly now_s: number
  /**
   * Returns what counts in a sum, from the records of both nodes of a pair
   * (`combineUses`).
   */
  readonly usesOf: (charge: Charge) => readonly Use[]
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

/** An act measured against the windows of one rule. */
export interface Measured {
  readonly states: WindowState[]
  /** Reasons of the windows in which the act does not fit. */
  readonly full: string[]
}

/** Measures an act against the windows of a rule. */
export function measure(
  { registry }: Policy,
  { windows }: CompiledRule,
  subject: Subject,
  context: WindowContext,
): Measured {
  const measured: Measured = { states: [], full: [] }
  const textOf = (asset: string | null, amount: bigint): string =>
    asset === null ? amount.toString() : formatUnits(amount, assetOf(registry, asset, '').decimals)
  const add = ({ window, isShare }: Meter, reading: Reading): void => {
    const { asset, max, frees_in_s } = reading
    const [used, added] = [textOf(asset, reading.used), textOf(asset, reading.added)]
    const limit = max === null ? null : textOf(asset, max)
    const fits = frees_in_s === 0
    measured.states.push({
      rule: window.rule,
      name: window.name,
      asset,
      share: isShare,
      used,
      max: limit,
      fits,
      frees_at: fits || frees_in_s === null ? null : context.now_s + frees_in_s,
    })
    if (fits) return
    const label = `windows.${window.name}${isShare ? ' (share of the sub-account)' : ''}`
    const unit = asset ?? 'acts'
    measured.full.push(
      limit === null
        ? `${label}: does not name ${unit}, which also leaves the wallet`
        : `${label}: ${used} of ${limit} ${unit} are used, and ${added} more do not fit`,
    )
  }
  for (const window of windows)
    for (const meter of metersOf(window, subject))
      for (const reading of readMeter(meter, subject.act.step, context.usesOf(meter)))
        add(meter, reading)
  return measured
}
