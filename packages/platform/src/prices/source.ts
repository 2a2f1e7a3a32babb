/** What one source says of one coin. */
export interface Quote {
  coin: string
  /** USD, scaled by `PRICE_DECIMALS`. */
  price: bigint
  /** When it was true, milliseconds since the Unix Epoch. */
  at: number
}

/** Somebody who knows prices in USD, on a protocol of its own. */
export interface PriceSource {
  name: string
  /** Answers the coins that it knows; others are left out. @throws SourceError */
  quotes(coins: readonly string[]): Promise<Quote[]>
}

/** Nothing usable was answered; `waitMs`: the source asked not to be asked again before. */
export class SourceError extends Error {
  readonly waitMs: number
  constructor(message: string, waitMs = 0) {
    super(message)
    this.name = 'SourceError'
    this.waitMs = waitMs
  }
}
