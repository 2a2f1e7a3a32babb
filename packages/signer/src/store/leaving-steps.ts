/** A step that counts in a window. */
interface Step {
  /** Time of its latest charge, in Unix ms. */
  readonly at: number
  /** Smallest units by asset. */
  readonly amounts: ReadonlyMap<string, bigint>
}

/** Returns what a step counts. @param asset null: the number of steps */
const unitsOf = ({ amounts }: Step, asset: string | null): bigint =>
  asset === null ? 1n : (amounts.get(asset) ?? 0n)

/** Returns the smallest index from `from` on for which a condition holds that stays true after it. */
function firstIndex(from: number, end: number, holds: (index: number) => boolean): number {
  let low = from
  for (let high = end; low < high;) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** The steps of a window in the order in which they leave it, with the sums of the first ones. */
export class LeavingSteps {
  readonly #steps: readonly Step[]
  /** Of each asset: the sum of the first n steps at index n. */
  readonly #sums = new Map<string | null, bigint[]>()

  /** @param steps in the order of their times */
  constructor(steps: readonly Step[]) {
    this.#steps = steps
  }

  #sumsOf(asset: string | null): bigint[] {
    const known = this.#sums.get(asset)
    if (known) return known
    let sum = 0n
    const sums = [sum, ...this.#steps.map((step) => (sum += unitsOf(step, asset)))]
    this.#sums.set(asset, sums)
    return sums
  }

  /**
   * Returns the time of the last step that must leave until the steps count less by `excess`; null if
   * all of them count less.
   * @param o.after steps of this time and earlier have left
   * @param o.left steps that are left out although they are in the order
   * @param o.added steps that count besides
   */
  timeOf(
    asset: string | null,
    excess: bigint,
    { after, left, added }: { after: number; left: readonly Step[]; added: readonly Step[] },
  ): number | null {
    const steps = this.#steps
    const sums = this.#sumsOf(asset)
    const first = firstIndex(0, steps.length, (index) => steps[index]!.at > after)
    const changes = [
      ...left.map((step) => ({ at: step.at, units: -unitsOf(step, asset) })),
      ...added.map((step) => ({ at: step.at, units: unitsOf(step, asset) })),
    ]
    /** Returns what has left when the steps of a time have. */
    const leftBy = (time: number): bigint => {
      const end = firstIndex(first, steps.length, (index) => steps[index]!.at > time)
      const changed = changes.reduce((sum, { at, units }) => (at <= time ? sum + units : sum), 0n)
      return sums[end]! - sums[first]! + changed
    }
    const index = firstIndex(first, steps.length, (each) => leftBy(steps[each]!.at) >= excess)
    const times = [...steps.slice(index, index + 1), ...added]
      .map(({ at }) => at)
      .filter((time) => leftBy(time) >= excess)
    return times.length === 0 ? null : Math.min(...times)
  }
}
