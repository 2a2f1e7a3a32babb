interface Charged {
  at: number
  amount: bigint
  step: string
}

/** Charges to each budget, as long as they count. `at` and `since` in Unix ms. */
export class Spending {
  readonly #charged = new Map<string, Charged[]>()

  add(budget: string, charged: Charged): void {
    const spent = this.#charged.get(budget)
    if (spent) spent.push(charged)
    else this.#charged.set(budget, [charged])
  }

  /** Charges with a time after `to`, made while the clock was ahead, count as made at `to`. */
  clamp(to: number): void {
    for (const spent of this.#charged.values())
      for (const each of spent) each.at = Math.min(each.at, to)
  }

  /** Returns the sum of a budget's charges since a time. */
  since(budget: string, since: number): bigint {
    return this.#chargedSince(budget, since).reduce((sum, item) => sum + item.amount, 0n)
  }

  /** Returns the largest charge of each step, for steps whose transactions exclude each other. */
  largestSince(budget: string, since: number): Map<string, bigint> {
    const largest = new Map<string, bigint>()
    for (const { step, amount } of this.#chargedSince(budget, since))
      if (amount > (largest.get(step) ?? 0n)) largest.set(step, amount)
    return largest
  }

  /**
   * Drops older charges permanently, because later calls never ask for an earlier time. A peer's
   * entries are added late and out of order.
   */
  #chargedSince(budget: string, since: number): Charged[] {
    const stored = (this.#charged.get(budget) ?? []).filter(({ at }) => at >= since)
    if (stored.length > 0) this.#charged.set(budget, stored)
    else this.#charged.delete(budget)
    return stored
  }
}
