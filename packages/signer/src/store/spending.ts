interface Charged {
  at: number
  amount: bigint
  step: string
}

/** What was charged to each budget, as long as it counts. `at` and `since` in Unix ms. */
export class Spending {
  readonly #charged = new Map<string, Charged[]>()

  add(budget: string, charged: Charged): void {
    const spent = this.#charged.get(budget)
    if (spent) spent.push(charged)
    else this.#charged.set(budget, [charged])
  }

  /** What was charged by a clock that was ahead counts as charged at `to`. */
  clamp(to: number): void {
    for (const spent of this.#charged.values())
      for (const each of spent) each.at = Math.min(each.at, to)
  }

  /** What was charged to a budget since a time. */
  since(budget: string, since: number): bigint {
    return this.#chargedSince(budget, since).reduce((sum, item) => sum + item.amount, 0n)
  }

  /**
   * The same by step, where the transactions of one step exclude each other: the largest of each.
   */
  largestSince(budget: string, since: number): Map<string, bigint> {
    const largest = new Map<string, bigint>()
    for (const { step, amount } of this.#chargedSince(budget, since))
      if (amount > (largest.get(step) ?? 0n)) largest.set(step, amount)
    return largest
  }

  /**
   * Drops what is older for good: the sums only look forward. A peer's entries come in late and out
   * of order.
   */
  #chargedSince(budget: string, since: number): Charged[] {
    const kept = (this.#charged.get(budget) ?? []).filter(({ at }) => at >= since)
    if (kept.length > 0) this.#charged.set(budget, kept)
    else this.#charged.delete(budget)
    return kept
  }
}
