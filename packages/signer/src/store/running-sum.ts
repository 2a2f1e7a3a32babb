import { LeavingSteps } from './leaving-steps.ts'

/** What a running sum needs to know of a charge. */
export interface CountedCharge {
  /** Unix ms. */
  readonly at: number
  readonly step: string
  /** Smallest units by asset. */
  readonly amounts: ReadonlyMap<string, bigint>
}

/** The charges of one step that count, of this node's record and of the partner's. */
export interface StepCharges<T> {
  readonly own: readonly T[]
  readonly other: readonly T[]
}

/** The charges of a window on one record. */
export interface ChargeList<T> {
  /** New charges are added at the end, as long as `version` is the same. */
  readonly charges: readonly T[]
  readonly version: number
}

/** Number of new charges from which the queue is sorted as a whole. */
const BULK = 32
/** Number of charges that have left from which the queue is shortened. */
const SHORTEN = 1024

/** Returns the larger amount of each asset of several charges; null if there are none. */
export function largestAmounts(
  charges: Iterable<Pick<CountedCharge, 'amounts'>>,
): ReadonlyMap<string, bigint> | null {
  let largest: ReadonlyMap<string, bigint> | null = null
  for (const { amounts } of charges) {
    if (largest === null || largest === amounts) {
      largest = amounts
      continue
    }
    // Two nodes almost always charge a step with the same amounts, and then nothing is copied.
    let merged: Map<string, bigint> | null = null
    for (const [asset, units] of amounts) {
      const known = largest.get(asset)
      if (known !== undefined && units <= known) continue
      merged ??= new Map(largest)
      merged.set(asset, units)
    }
    largest = merged ?? largest
  }
  return largest
}

/**
 * Sum of a window over the records of two nodes, in which each step counts once, with its larger
 * amounts. It is updated by the charges that were added since the last call, and by those that have
 * left the window since, so that a signature does not add up all charges of a week.
 */
export class RunningSum<T extends CountedCharge> {
  /** Charges that count, by time; those before `#head` have left. */
  #queue: T[] = []
  #head = 0
  #steps = new Map<string, { own: T[]; other: T[] }>()
  #totals = new Map<string, bigint>()
  /** Number of charges that were read of each list, and the versions of the lists. */
  #read: [own: number, other: number] = [0, 0]
  #versions: [own: number, other: number] = [-1, -1]
  /** Latest time of a charge that was left out because it was too old. */
  #leftAt = -Infinity
  /** Charges count if their time is later, in Unix ms. */
  #after = -Infinity
  /** The order in which the steps leave; null: a step has changed since. */
  #leaving: LeavingSteps | null = null

  /** Sum of all steps by asset. An asset whose steps have all left is absent or zero. */
  get totals(): ReadonlyMap<string, bigint> {
    return this.#totals
  }

  /** Number of steps that count. */
  get count(): number {
    return this.#steps.size
  }

  /** Returns the charges of a step that count. */
  chargesOf(step: string): StepCharges<T> | undefined {
    return this.#steps.get(step)
  }

  /**
   * Returns the time of the latest charge of the last step that must leave the window until the steps
   * count less by `excess`, oldest first, in Unix ms; null if all of them count less. The order of the
   * steps is kept until a step changes, so that a full window is sorted once for all acts that do not
   * fit into it.
   * @param asset null: the number of steps
   * @param without steps that are left out
   * @param added steps that count besides
   */
  leavingAt(
    asset: string | null,
    excess: bigint,
    without: Iterable<string> = [],
    added: readonly Pick<CountedCharge, 'at' | 'amounts'>[] = [],
  ): number | null {
    this.#leaving ??= new LeavingSteps(
      Array.from(this.#steps.values(), (step) => countedOf(step)).sort((a, b) => a.at - b.at),
    )
    const left = [...without].flatMap((step) => {
      const charges = this.#steps.get(step)
      return charges ? [countedOf(charges)] : []
    })
    return this.#leaving.timeOf(asset, excess, { after: this.#after, left, added })
  }

  /**
   * Brings the sum up to date.
   * @param after charges count if their time is later, in Unix ms. It may be earlier than at a call
   *   before, because the clock was set back or another document states a longer window; then charges
   *   that had left are counted again
   */
  update(own: ChargeList<T>, other: ChargeList<T>, after: number): void {
    const isReplaced = own.version !== this.#versions[0] || other.version !== this.#versions[1]
    if (isReplaced || this.#leftAt > after) {
      this.#clear()
      this.#versions = [own.version, other.version]
    }
    this.#after = after
    const added = own.charges.length + other.charges.length - this.#read[0] - this.#read[1]
    const isBulk = added > BULK
    for (const [at, side] of (['own', 'other'] as const).entries()) {
      const { charges } = side === 'own' ? own : other
      for (let next = this.#read[at]!; next < charges.length; next++)
        this.#add(charges[next]!, side, { after, isBulk })
      this.#read[at] = charges.length
    }
    if (isBulk) {
      this.#queue = this.#queue.slice(this.#head).sort((a, b) => a.at - b.at)
      this.#head = 0
    }
    this.#expire(after)
  }

  #clear(): void {
    this.#queue = []
    this.#head = 0
    this.#steps = new Map()
    this.#totals = new Map()
    this.#read = [0, 0]
    this.#leftAt = -Infinity
    this.#leaving = null
  }

  #add(
    charge: T,
    side: 'own' | 'other',
    { after, isBulk }: { after: number; isBulk: boolean },
  ): void {
    if (charge.at <= after) {
      this.#leftAt = Math.max(this.#leftAt, charge.at)
      return
    }
    this.#leaving = null
    if (isBulk) this.#queue.push(charge)
    else this.#insert(charge)
    const step = this.#steps.get(charge.step) ?? { own: [], other: [] }
    this.#steps.set(charge.step, step)
    this.#change(step, () => {
      step[side].push(charge)
    })
  }

  /** Inserts a charge by its time; almost all belong at the end. */
  #insert(charge: T): void {
    let at = this.#queue.length
    while (at > this.#head && this.#queue[at - 1]!.at > charge.at) at--
    this.#queue.splice(at, 0, charge)
  }

  #expire(after: number): void {
    for (let first = this.#queue[this.#head]; first; first = this.#queue[++this.#head]) {
      if (first.at > after) break
      const charge = first
      this.#leftAt = Math.max(this.#leftAt, charge.at)
      const step = this.#steps.get(charge.step)!
      this.#change(step, () => {
        for (const list of [step.own, step.other]) {
          const at = list.indexOf(charge)
          if (at >= 0) list.splice(at, 1)
        }
      })
      if (step.own.length + step.other.length === 0) this.#steps.delete(charge.step)
    }
    if (this.#head < SHORTEN || this.#head * 2 < this.#queue.length) return
    this.#queue = this.#queue.slice(this.#head)
    this.#head = 0
  }

  /** Changes the charges of a step, and the totals by the difference. */
  #change(step: StepCharges<T>, change: () => void): void {
    const before = amountsOf(step)
    change()
    const after = amountsOf(step)
    if (before === after) return
    // A step that has left altogether is the first in the order, where it is passed over.
    if (before !== null && after !== null && !isEqual(before, after)) this.#leaving = null
    for (const [asset, units] of before ?? []) this.#addUnits(asset, -units)
    for (const [asset, units] of after ?? []) this.#addUnits(asset, units)
  }

  #addUnits(asset: string, units: bigint): void {
    this.#totals.set(asset, (this.#totals.get(asset) ?? 0n) + units)
  }
}

/** Returns what a step counts, and the time of its latest charge. */
const countedOf = <T extends CountedCharge>({
  own,
  other,
}: StepCharges<T>): Pick<CountedCharge, 'at' | 'amounts'> => {
  let at = -Infinity
  for (const list of [own, other]) for (const charge of list) at = Math.max(at, charge.at)
  return { at, amounts: amountsOf({ own, other }) ?? new Map() }
}

const isEqual = (a: ReadonlyMap<string, bigint>, b: ReadonlyMap<string, bigint>): boolean =>
  a.size === b.size && [...a].every(([asset, units]) => b.get(asset) === units)

/** Returns what a step counts; null if it has no charges. */
const amountsOf = <T extends CountedCharge>({
  own,
  other,
}: StepCharges<T>): ReadonlyMap<string, bigint> | null => largestAmounts([...own, ...other])
