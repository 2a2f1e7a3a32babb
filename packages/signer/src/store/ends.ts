const DAY_S = 86_400
/** Number of days after which a seen expiry is ignored. */
const WINDOW_DAYS = 7

interface End {
  end: number
  /** Unix seconds. */ at: number
}

/**
 * Expiries of transactions on one network that counts ledgers or slots, from which a node that
 * queries no chain estimates the chain's height. A transaction that can still be included expires
 * above the chain's height, so each seen expiry is an upper bound of the height at that time, and
 * the lowest one is the best bound. An expiry that used the full allowance does not move the bound.
 */
export class Ends {
  #highest: End | null = null
  /** The lowest expiry of each day, by the number of the day. */
  readonly #lowest = new Map<number, End>()

  get highest(): number | null {
    return this.#highest?.end ?? null
  }

  /**
   * @param isOwn whether this node evaluated it; an expiry recorded by a peer may be too low on
   *   purpose
   */
  add(end: number, at: number, isOwn: boolean): void {
    if (!this.#highest || end > this.#highest.end) this.#highest = { end, at }
    if (!isOwn) return
    const day = Math.floor(at / DAY_S)
    const lowest = this.#lowest.get(day)
    if (!lowest || end <= lowest.end) this.#lowest.set(day, { end, at })
    for (const existing of this.#lowest.keys())
      if (existing <= day - WINDOW_DAYS) this.#lowest.delete(existing)
  }

  /**
   * Returns the maximum height that the chain can have reached, based on the expiries of the last
   * days, or on the highest one on record if there are none.
   * @param perSecond maximum number of ledgers or slots per second
   * @returns null if no expiry was seen yet
   */
  reachedMost(now: number, perSecond: number): number | null {
    const today = Math.floor(now / DAY_S)
    const recent = [...this.#lowest].flatMap(([day, each]) =>
      day > today - WINDOW_DAYS ? [each] : [],
    )
    const existing = recent.length > 0 ? recent : this.#highest ? [this.#highest] : []
    const reached = existing.map(
      ({ end, at }) => end + Math.floor(perSecond * Math.max(0, now - at)),
    )
    return reached.length === 0 ? null : Math.min(...reached)
  }
}
