/** One source's price of one coin. */
export interface Quote {
  coin: string
  /** USD, scaled by `PRICE_DECIMALS`. */
  price: bigint
  /** Time of the price in milliseconds since the Unix epoch. */
  at: number
}

/** A source of prices in USD. */
export interface PriceSource {
  name: string
  /**
   * Returns quotes of the coins that it knows; others are omitted.
   * @throws SourceError
   */
  quotes(coins: readonly string[]): Promise<Quote[]>
}

/**
 * Thrown when a source returned nothing usable. `waitMs`: milliseconds for which the source
 * requested not to be queried again.
 */
export class SourceError extends Error {
  readonly waitMs: number
  constructor(message: string, waitMs = 0) {
    super(message)
    this.name = 'SourceError'
    this.waitMs = waitMs
  }
}
