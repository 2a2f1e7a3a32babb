import { z } from 'zod'
import { larger } from '../amounts.ts'
import { readShape } from '../document/read.ts'
import type { Window } from '../document/rules.ts'
import { assetName } from '../document/fields.ts'
import { LIMITS } from '../limits.ts'
import type { PolicyRegistry } from '../registry.ts'
import { unitsByAsset, type Subject } from './conditions.ts'

/** A window with its sums in smallest units. */
export interface CompiledWindow {
  readonly rule: string
  readonly name: string
  readonly hours: number
  readonly per: Window['per']
  /** Null: only the number of acts is limited. */
  readonly max: ReadonlyMap<string, bigint> | null
  readonly count: number | null
  /** Part of a sub-account in units of 1/10,000; null unless `per` is `workspace`. */
  readonly share: bigint | null
}

const SHARE_UNIT = 10_000n
const SHARE_DEFAULT = '0.25'

/**
 * Compiles a window.
 * @param path of the window, for errors
 * @throws PolicyError `AMOUNT` or `UNKNOWN_ASSET`
 */
export function compileWindow(
  rule: string,
  window: Window,
  registry: PolicyRegistry,
  path: string,
): CompiledWindow {
  const { name, hours, per } = window
  const [whole, fraction = ''] = (window.share ?? SHARE_DEFAULT).split('.') as [string, string?]
  return {
    rule,
    name,
    hours,
    per,
    max: unitsByAsset(window.max, registry, `${path}.max`),
    count: window.count ?? null,
    share: per === 'workspace' ? BigInt(whole + fraction.padEnd(4, '0')) : null,
  }
}

/** What an act adds to one sum of a window: its amount, its fee, and one act. */
export interface Charge {
  /**
   * Identifies the sum: rule ID, window name, and the value by which the window counts. It does not
   * change when the document changes, and a new window begins at zero.
   */
  readonly key: string
  readonly hours: number
  /** Smallest units by asset. */
  readonly amounts: ReadonlyMap<string, bigint>
}

/** A charge with the limits of its sum. */
export interface Meter extends Charge {
  readonly window: CompiledWindow
  /** The sum of one sub-account's part of a window of the whole workspace. */
  readonly isShare: boolean
  readonly max: ReadonlyMap<string, bigint> | null
  readonly count: number | null
}

/** One step that a node has counted in a sum. */
export interface Use {
  readonly step: string
  /** Seconds since the step was admitted, by the clock of the node that reports it. */
  readonly age_s: number
  readonly amounts: ReadonlyMap<string, bigint>
}

/**
 * Returns what an act adds to a window: the amount, and in the native coin the largest fee. A fee that
 * a gas tank pays counts in the windows that name the native coin, because whether the tank paid it
 * is not certain and the tank is the workspace's too. Windows that do not name it are not charged for
 * it, so they limit the tokens alone. A zero fee adds nothing.
 */
export function outflow(
  { max }: Pick<CompiledWindow, 'max'>,
  { act, asset, countsTankFees }: Subject,
): ReadonlyMap<string, bigint> {
  const { fee_asset, wallet_pays_fee } = asset
  const amounts = new Map([[act.asset, act.amount]])
  const counts = wallet_pays_fee || (countsTankFees && max?.has(fee_asset) === true)
  // Either the transaction or its cancellation is included, so the larger of the two counts.
  const moved = amounts.get(fee_asset) ?? 0n
  const most = larger(moved + act.fee.max, act.fee.replacement ?? 0n)
  if (counts && most > moved) amounts.set(fee_asset, most)
  return amounts
}

/** Returns the value by which a window counts an act. The tag of a destination has no influence. */
function valueOf(per: Window['per'], { act, paymentKey }: Subject): readonly string[] {
  if (per === 'workspace') return []
  if (per === 'sub_account') return [act.sub_account]
  if (per === 'api_key') return [act.api_key]
  return [act.network, paymentKey]
}

/** Values of a sum's key besides the rule and the window: `share` is one sub-account's part. */
export interface SumKey {
  readonly rule: string
  readonly name: string
  readonly per: Window['per'] | 'share'
  /** What the sum counts: nothing, a sub-account, an API key, or a network and a payment key. */
  readonly of: readonly string[]
}

const sumKey = z.tuple([z.string(), z.string(), z.string()]).rest(z.string())

/** Reads the key of a {@link Charge}; null if the text is none. */
export function readSumKey(text: string): SumKey | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const parsed = sumKey.safeParse(value)
  if (!parsed.success) return null
  const [rule, name, per, ...of] = parsed.data
  return { rule, name, per: per as SumKey['per'], of }
}

/** Returns the limits of a sum of a window. @param isShare it is one sub-account's part */
export function limitsOf(
  { max, count, share }: CompiledWindow,
  isShare: boolean,
): Pick<Meter, 'max' | 'count'> {
  if (!isShare || share === null) return { max, count }
  const part = (limit: bigint): bigint => (limit * share) / SHARE_UNIT
  return {
    max: max && new Map([...max].map(([asset, limit]) => [asset, part(limit)])),
    count: count === null ? null : Number(part(BigInt(count))),
  }
}

/**
 * Returns the sums of a window to which an act is charged: one, or two for a window of the whole
 * workspace, of which one sub-account may use only its share.
 */
export function metersOf(window: CompiledWindow, subject: Subject): Meter[] {
  const { rule, name, hours, per, max, count, share } = window
  const amounts = outflow(window, subject)
  const whole: Meter = {
    key: JSON.stringify([rule, name, per, ...valueOf(per, subject)]),
    hours,
    amounts,
    window,
    isShare: false,
    max,
    count,
  }
  if (share === null || share === SHARE_UNIT) return [whole]
  const key = JSON.stringify([rule, name, 'share', subject.act.sub_account])
  return [whole, { ...whole, key, isShare: true, ...limitsOf(window, true) }]
}

/** Returns the age in seconds above which a step no longer counts. */
export const cutoffOf = (hours: number): number => hours * 3600 + LIMITS.windowSlackS

/** Returns the larger amount of each asset. */
function largerAmounts(
  a: ReadonlyMap<string, bigint>,
  b: ReadonlyMap<string, bigint>,
): ReadonlyMap<string, bigint> {
  const merged = new Map(a)
  for (const [asset, amount] of b) merged.set(asset, larger(merged.get(asset) ?? amount, amount))
  return merged
}

const combineTwo = (a: Use, b: Use): Use => ({
  step: a.step,
  age_s: Math.min(a.age_s, b.age_s),
  amounts: largerAmounts(a.amounts, b.amounts),
})

/**
 * Combines what two nodes have counted in one sum. Every signature is made by two nodes, so the
 * records of any two nodes together contain all of them. A step counts once, with the larger amount
 * and the smaller age.
 * @param hours of the window: older steps are left out
 */
export function combineUses(own: readonly Use[], other: readonly Use[], hours: number): Use[] {
  const cutoff = cutoffOf(hours)
  const steps = new Map<string, Use>()
  for (const list of [own, other])
    for (const use of list) {
      if (use.age_s > cutoff) continue
      const known = steps.get(use.step)
      steps.set(use.step, known === undefined ? use : combineTwo(known, use))
    }
  return [...steps.values()]
}

/**
 * Returns the charges of a step that was first admitted under one way and is now signed under
 * another: the charges of both. A sum that both ways charge keeps the larger amounts.
 */
export function combineCharges(held: readonly Charge[], added: readonly Charge[]): Charge[] {
  const charges = new Map(held.map((charge) => [charge.key, charge]))
  for (const charge of added) {
    const known = charges.get(charge.key)
    charges.set(charge.key, {
      key: charge.key,
      hours: Math.max(known?.hours ?? 0, charge.hours),
      amounts: known ? largerAmounts(known.amounts, charge.amounts) : charge.amounts,
    })
  }
  return [...charges.values()]
}

/** What a sum contains before an act is added. */
export interface WindowSum {
  /** Sums of the steps other than the act's, in smallest units. An absent asset counts as zero. */
  readonly used: ReadonlyMap<string, bigint>
  /** Number of these steps. */
  readonly count: number
  /** Amounts that are counted for the act's own step; null if the step is not counted yet. */
  readonly own: ReadonlyMap<string, bigint> | null
  /**
   * Returns the age in seconds of the last step that must leave the window until these steps count
   * less by `excess`, oldest first; null if all of them count less. Absent: it is determined from the
   * single steps.
   */
  readonly leavingAge?: (asset: string | null, excess: bigint) => number | null
}

/**
 * Adds up what counts in a sum. This is the definition of a {@link WindowSum}: a caller that keeps
 * running sums must return the same.
 * @param step of the act
 * @param hours of the window: older steps are left out
 */
export function sumOfUses(uses: readonly Use[], step: string, hours: number): WindowSum {
  const used = new Map<string, bigint>()
  let count = 0
  let own: WindowSum['own'] = null
  for (const use of combineUses(uses, [], hours)) {
    if (use.step === step) {
      own = use.amounts
      continue
    }
    count++
    for (const [asset, units] of use.amounts) used.set(asset, (used.get(asset) ?? 0n) + units)
  }
  return { used, count, own }
}

/** State of one limit of a sum, with the act included in `used`. */
export interface Reading {
  /** Null: the number of acts. */
  readonly asset: string | null
  /** Without the act. */
  readonly used: bigint
  /** What the act adds. */
  readonly added: bigint
  /** Null: the window has no maximum for the asset, so the act does not fit. */
  readonly max: bigint | null
  /** Seconds until the act fits; 0: it fits now; null: it never fits. */
  readonly frees_in_s: number | null
}

/**
 * Returns the age of the last step that must leave until the steps count less by `excess`; null if
 * all of them count less. This is the definition of {@link WindowSum.leavingAge}.
 */
export function leavingAge(
  others: readonly Use[],
  asset: string | null,
  excess: bigint,
): number | null {
  let left = excess
  for (const use of [...others].sort((a, b) => b.age_s - a.age_s)) {
    left -= unitsOf(use.amounts, asset)
    if (left <= 0n) return use.age_s
  }
  return null
}

/** Returns after how many seconds a step of an age has left a window, at least one. */
const freesIn = (age_s: number | null, hours: number): number | null =>
  // A step leaves one second after its age has reached the cut-off.
  age_s === null ? null : Math.max(1, cutoffOf(hours) + 1 - age_s)

/**
 * Measures an act against one sum.
 * @param sum what counts in the sum
 * @param uses returns the single steps, which are only read if the act does not fit; the act's own
 *   step may be among them
 * @returns one reading for each asset that the act moves if the window limits sums, and one for the
 *   number of acts if it limits that
 */
export function readSum(
  meter: Meter,
  step: string,
  { used, count, own, leavingAge: known }: WindowSum,
  uses: () => readonly Use[],
): Reading[] {
  const { max, hours } = meter
  const ageOf = (asset: string | null, excess: bigint): number | null =>
    known
      ? known(asset, excess)
      : leavingAge(
          combineUses(uses(), [], hours).filter((use) => use.step !== step),
          asset,
          excess,
        )
  const readings: Reading[] = []
  const read = (asset: string | null, charge: bigint, limit: bigint | null): void => {
    const before = asset === null ? BigInt(count) : (used.get(asset) ?? 0n)
    const added = own === null ? charge : larger(charge, unitsOf(own, asset))
    const sum = before + added
    const frees_in_s =
      limit === null ? null : sum <= limit ? 0 : freesIn(ageOf(asset, sum - limit), hours)
    readings.push({ asset, used: before, added, max: limit, frees_in_s })
  }
  if (max) for (const [asset, amount] of meter.amounts) read(asset, amount, max.get(asset) ?? null)
  if (meter.count !== null) read(null, 1n, BigInt(meter.count))
  return readings
}

/** Returns what a step adds to the sum of an asset. @param asset null: the number of acts */
const unitsOf = (amounts: ReadonlyMap<string, bigint>, asset: string | null): bigint =>
  asset === null ? 1n : (amounts.get(asset) ?? 0n)

/** Like {@link readSum}, for a sum that is given by its single steps. */
export const readMeter = (meter: Meter, step: string, uses: readonly Use[]): Reading[] =>
  readSum(meter, step, sumOfUses(uses, step, meter.hours), () => uses)

const usesShape = z
  .array(
    z.strictObject({
      step: z.string().min(1).max(200),
      age_s: z.int().min(0).max(10_000_000),
      amounts: z.record(assetName, z.string().regex(/^(?:0|[1-9]\d{0,77})$/, 'must be digits')),
    }),
  )
  .max(100_000)

/**
 * Reads what another node reports for one sum: `[{step, age_s, amounts: {asset: digits}}]`.
 * @throws PolicyError `SHAPE`
 */
export function readUses(value: unknown): Use[] {
  return readShape(usesShape, value).map(({ amounts, ...use }) => ({
    ...use,
    amounts: new Map(Object.entries(amounts).map(([asset, digits]) => [asset, BigInt(digits)])),
  }))
}
