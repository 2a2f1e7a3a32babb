const DAY_S = 86_400
/** An end that was seen so long ago says nothing any more. */
const WINDOW_DAYS = 7

interface End {
  end: number
  /** Unix seconds. */ at: number
}

/**
 * Ends of transactions on one network that counts ledgers or slots, by which a node that asks no
 * chain measures how far the chain has come. A transaction that can still be included ends ahead of
 * the chain, so each end that was seen is at least what the chain had reached then, and the lowest
 * of them tells most. An end that used its allowance moves nothing.
 */
export class Ends {
  #highest: End | null = null
  /** The lowest of each day, by the day's number. */
  readonly #lowest = new Map<number, End>()

  get highest(): number | null {
    return this.#highest?.end ?? null
  }

  /** @param isOwn whether this node judged it: what a peer wrote down may be too low on purpose */
  add(end: number, at: number, isOwn: boolean): void {
    if (!this.#highest || end > this.#highest.end) this.#highest = { end, at }
    if (!isOwn) return
    const day = Math.floor(at / DAY_S)
    const lowest = this.#lowest.get(day)
    if (!lowest || end <= lowest.end) this.#lowest.set(day, { end, at })
    for (const known of this.#lowest.keys())
      if (known <= day - WINDOW_DAYS) this.#lowest.delete(known)
  }

  /**
   * The most that the chain can have reached, by the ends of the last days; by the highest on
   * record where those had none.
   * @param perSecond the most that it counts in a second
   * @returns null: nothing was seen yet
   */
  reachedMost(now: number, perSecond: number): number | null {
    const today = Math.floor(now / DAY_S)
    const recent = [...this.#lowest].flatMap(([day, each]) =>
      day > today - WINDOW_DAYS ? [each] : [],
    )
    const known = recent.length > 0 ? recent : this.#highest ? [this.#highest] : []
    const reached = known.map(({ end, at }) => end + Math.floor(perSecond * Math.max(0, now - at)))
    return reached.length === 0 ? null : Math.min(...reached)
  }
}
