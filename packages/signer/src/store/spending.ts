/** The amount of a transaction that counts against a budget. `at` in Unix ms. */
export interface Charged {
  readonly budget: string
  readonly amount: bigint
  at: number
  readonly step: string
  /** Hash of the unsigned transaction; the same transaction counts once, also if several nodes recorded it. */
  readonly transaction: string
}

/** The charges of a step that a node recorded at a height. */
export interface ChargedStep {
  height: number
  charges: readonly Charged[]
}

/** Charges to each budget, as long as they count. */
export class Spending {
  readonly #charged = new Map<string, Charged[]>()
  /** The same charges in the order of their heights, to be told to other nodes. */
  #steps: ChargedStep[] = []
  /** Number of steps after the last removal of old ones. */
  #kept = 0

  get size(): number {
    return this.#steps.length
  }

  /** Adds the charges of a step. Its height must be above all earlier ones. */
  add(step: ChargedStep): void {
    if (step.charges.length === 0) return
    this.#steps.push(step)
    for (const charge of step.charges) {
      const charged = this.#charged.get(charge.budget)
      if (charged) charged.push(charge)
      else this.#charged.set(charge.budget, [charge])
    }
  }

  /** Charges with a time after `to`, made while the clock was ahead, count as made at `to`. */
  clamp(to: number): void {
    for (const { charges } of this.#steps)
      for (const each of charges) each.at = Math.min(each.at, to)
  }

  /**
   * Returns a budget's charges since a time. Drops older ones permanently, because later calls
   * never ask for an earlier time. A restored node adds its peers' entries late and out of order.
   */
  since(budget: string, since: number): readonly Charged[] {
    const stored = (this.#charged.get(budget) ?? []).filter(({ at }) => at >= since)
    if (stored.length > 0) this.#charged.set(budget, stored)
    else this.#charged.delete(budget)
    return stored
  }

  /**
   * Drops all steps before a time, like {@link since}. Does nothing until their number has doubled,
   * so that a call costs little on average.
   */
  drop(before: number): void {
    if (this.#steps.length < 2 * this.#kept + 1000) return
    this.#steps = this.#steps.filter(({ charges }) => charges.some(({ at }) => at >= before))
    this.#kept = this.#steps.length
    for (const budget of this.#charged.keys()) this.since(budget, before)
  }

  /** Returns the steps above a height, at most `max` of them, in the order of their heights. */
  stepsAfter(height: number, max: number): ChargedStep[] {
    let [low, high] = [0, this.#steps.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#steps[middle]!.height <= height) low = middle + 1
      else high = middle
    }
    return this.#steps.slice(low, low + max)
  }
}
