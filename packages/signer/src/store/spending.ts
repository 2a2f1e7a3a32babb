import { LIMITS } from '@custody/policy'
import { RunningSum, type ChargeList } from './running-sum.ts'

const HOUR_MS = 3_600_000
/**
 * Time for which a charge of another node counts beyond its window. It covers the difference of the
 * clocks, and the way of the message.
 */
export const SLACK_MS = LIMITS.windowSlackS * 1000
/** Time for which a charge to a budget is kept, in milliseconds. */
export const BUDGET_KEPT_MS = 24 * HOUR_MS + SLACK_MS
/**
 * Time for which a charge to a window of a policy is kept, in milliseconds: the longest window,
 * whatever the window's hours are, because a later document may extend it. The second covers ages
 * that are rounded down.
 */
export const WINDOW_KEPT_MS = LIMITS.windowHours * HOUR_MS + SLACK_MS + 1000

/** Fields that the charges of a transaction have in common. `at` in Unix ms. */
interface ChargedTransaction {
  at: number
  readonly step: string
  /** Hash of the unsigned transaction; the same transaction counts once, also if several nodes recorded it. */
  readonly transaction: string
}

/** The amount of a transaction that counts against a budget of 24 hours. */
export interface Charged extends ChargedTransaction {
  readonly budget: string
  readonly amount: bigint
}

/** The amounts of a transaction that count in one sum of a policy. */
export interface ChargedWindow extends ChargedTransaction {
  /** Name of the sum ({@link windowName}). */
  readonly window: string
  /** Smallest units by asset. */
  readonly amounts: ReadonlyMap<string, bigint>
}

/** The charges of a step that a node recorded at a height. */
export interface ChargedStep {
  height: number
  charges: readonly Charged[]
  windows?: readonly ChargedWindow[]
}

/** Returns the name of a sum of a policy, which no budget has. */
export const windowName = (workspace: string, key: string): string =>
  JSON.stringify(['policy', workspace, key])

/** Returns the workspace and the key of a sum of a policy from its name. */
export function readWindowName(name: string): { workspace: string; key: string } {
  const [, workspace, key] = JSON.parse(name) as [string, string, string]
  return { workspace, key }
}

/**
 * Memory of a step, a charge, the amounts of a step, and the name of a sum without its text, in bytes,
 * as measured with 200,000 steps and rounded up.
 */
const MEMORY = { step: 220, charge: 56, amounts: 200, name: 200 } as const

/** Returns the memory of a text in bytes: V8 uses two for each character if one of them needs two. */
const memoryOf = (text: string): number =>
  /[\u0100-\uffff]/.test(text) ? 2 * text.length : text.length

/** Charges to each budget and to each window of a policy, as long as they count. */
export class Spending {
  readonly #charged = new Map<string, Charged[]>()
  readonly #windows = new Map<string, ChargedWindow[]>()
  /** The same charges in the order of their heights, to be sent to other nodes. */
  #steps: ChargedStep[] = []
  /** Number of steps after the last removal of old ones. */
  #kept = 0
  #bytes = 0
  #revision = 0
  /** Changed when charges were removed or their times were changed. */
  #version = 0
  /** Running sums with the record of another node, by window. */
  #sums = new WeakMap<Spending, Map<string, RunningSum<ChargedWindow>>>()

  /** Estimated memory in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Changed by everything that changes what counts at a given time. */
  get revision(): number {
    return this.#revision
  }

  /** The steps whose charges may still count, in the order of their heights. */
  get steps(): readonly ChargedStep[] {
    return this.#steps
  }

  /** Adds the charges of a step. Its height must be above all earlier ones. */
  add({ height, charges: added, windows = [] }: ChargedStep): void {
    if (added.length === 0 && windows.length === 0) return
    this.#revision++
    const charges = added.map((charge) => this.#addCharge(charge))
    const step =
      windows.length === 0
        ? { height, charges }
        : { height, charges, windows: windows.map((charge) => this.#addWindow(charge)) }
    this.#steps.push(step)
    this.#bytes += bytesOf(step)
  }

  /** Adds a charge to its budget; all charges of a budget share one copy of its name. */
  #addCharge(charge: Charged): Charged {
    const charged = this.#charged.get(charge.budget)
    if (!charged) {
      this.#charged.set(charge.budget, [charge])
      this.#bytes += MEMORY.name + memoryOf(charge.budget)
      return charge
    }
    const stored = { ...charge, budget: charged[0]!.budget }
    charged.push(stored)
    return stored
  }

  /** Adds a charge to its window; all charges of a window share one copy of its long name. */
  #addWindow(charge: ChargedWindow): ChargedWindow {
    const charged = this.#windows.get(charge.window)
    if (!charged) {
      this.#windows.set(charge.window, [charge])
      this.#bytes += MEMORY.name + memoryOf(charge.window)
      return charge
    }
    const stored = { ...charge, window: charged[0]!.window }
    charged.push(stored)
    return stored
  }

  /** Charges with a time after `to`, made while the clock was ahead, count as made at `to`. */
  clamp(to: number): void {
    this.#replaced()
    for (const { charges, windows = [] } of this.#steps)
      for (const each of [...charges, ...windows]) each.at = Math.min(each.at, to)
  }

  /**
   * Returns a budget's charges since a time. Drops older ones permanently, because later calls
   * never pass an earlier time. A restored node adds its peers' entries late and out of order.
   */
  since(budget: string, since: number): readonly Charged[] {
    return keepSince(this.#charged, budget, since)
  }

  /**
   * Returns a window's charges since a time. Drops nothing, unlike {@link since}: another document
   * may count the same charges for more hours.
   * @param window see {@link windowName}
   */
  windowSince(window: string, since: number): readonly ChargedWindow[] {
    return (this.#windows.get(window) ?? []).filter(({ at }) => at >= since)
  }

  /** Names of all sums of policies that were charged ({@link windowName}). */
  windowNames(): Iterable<string> {
    return this.#windows.keys()
  }

  /**
   * Returns all charges to a window, also those that no longer count.
   * @param window see {@link windowName}
   */
  chargesTo(window: string): ChargeList<ChargedWindow> {
    return { charges: this.#windows.get(window) ?? [], version: this.#version }
  }

  /**
   * Returns the sum of a window over this record and that of another node. It is kept until charges
   * are dropped, so that a later call only adds and removes what has changed.
   * @param after charges count if their time is later, in Unix ms. Only one document is in force, so
   *   a window has one length at a time
   */
  runningSum(other: Spending, window: string, after: number): RunningSum<ChargedWindow> {
    const sums = this.#sums.get(other) ?? new Map<string, RunningSum<ChargedWindow>>()
    this.#sums.set(other, sums)
    const sum = sums.get(window) ?? new RunningSum<ChargedWindow>()
    sums.set(window, sum)
    sum.update(this.chargesTo(window), other.chargesTo(window), after)
    return sum
  }

  #replaced(): void {
    this.#version++
    this.#revision++
    this.#sums = new WeakMap()
  }

  /**
   * Drops all charges that no longer count. Does nothing until the number of steps has doubled, so
   * that a call costs little on average.
   * @param clockMs the current time
   */
  drop(clockMs: number): void {
    if (this.#steps.length < 2 * this.#kept + 1000) return
    this.#replaced()
    const [budgets, policies] = [clockMs - BUDGET_KEPT_MS, clockMs - WINDOW_KEPT_MS]
    this.#steps = this.#steps.filter(
      ({ charges, windows }) =>
        charges.some(({ at }) => at >= budgets) || windows?.some(({ at }) => at >= policies),
    )
    this.#kept = this.#steps.length
    for (const budget of this.#charged.keys()) keepSince(this.#charged, budget, budgets)
    for (const window of this.#windows.keys()) keepSince(this.#windows, window, policies)
    this.#bytes = 0
    for (const step of this.#steps) this.#bytes += bytesOf(step)
    for (const name of [...this.#charged.keys(), ...this.#windows.keys()])
      this.#bytes += MEMORY.name + memoryOf(name)
  }
}

/** Removes the charges of a name before a time, and returns the others. */
function keepSince<T extends ChargedTransaction>(
  lists: Map<string, T[]>,
  name: string,
  since: number,
): readonly T[] {
  const stored = (lists.get(name) ?? []).filter(({ at }) => at >= since)
  if (stored.length > 0) lists.set(name, stored)
  else lists.delete(name)
  return stored
}

/** Returns the estimated memory of a step in bytes, without the names of its sums. */
function bytesOf({ charges, windows = [] }: ChargedStep): number {
  const { step, transaction } = (charges[0] ?? windows[0])!
  let bytes = MEMORY.step + memoryOf(step) + memoryOf(transaction) + MEMORY.charge * charges.length
  windows.forEach(({ amounts }, at) => {
    bytes += MEMORY.charge + (amounts === windows[at - 1]?.amounts ? 0 : MEMORY.amounts)
  })
  return bytes
}
