import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import type { Environment } from '../../core/environment.ts'
import { consensusPrice, FRESH_MS, STALE_MS, type ConsensusPrice } from './consensus-price.ts'
import { SourceError, type PriceSource, type Quote } from './source.ts'

export interface Price extends ConsensusPrice {
  stale: boolean
}

const FIRST_ANSWER_MS = 5000

/**
 * Prices in USD, in memory. Each source is queried in the background at its own interval, so an
 * unreachable or slow source delays no request. Each process has its own prices.
 */
export class Prices {
  readonly coins: ReadonlySet<string>
  readonly #sources: readonly PriceSource[]
  readonly #environment: Environment
  readonly #log: Pick<Logger, 'warn' | 'info'>
  readonly #everyMs: number
  readonly #quotes = new Map<string, Map<string, Quote>>()
  readonly #last = new Map<string, ConsensusPrice>()

  constructor(o: {
    sources: readonly PriceSource[]
    coins: readonly string[]
    environment: Environment
    log: Pick<Logger, 'warn' | 'info'>
    everyMs: number
  }) {
    this.coins = new Set(o.coins)
    this.#sources = o.sources
    this.#environment = o.environment
    this.#log = o.log
    this.#everyMs = o.everyMs
  }

  /**
   * Returns the price of a coin; null if none was ever known. If the sources disagree, the last
   * price on which they agreed.
   */
  price(coin: string): Price | null {
    const now = this.#environment.now()
    const quotes = [...(this.#quotes.get(coin)?.entries() ?? [])].map(([source, quote]) => ({
      ...quote,
      source,
    }))
    const agreed = consensusPrice(quotes, now)
    const last = this.#last.get(coin)
    const price =
      agreed && (!last || agreed.at >= last.at || now - agreed.at <= FRESH_MS) ? agreed : last
    if (!price) return null
    this.#last.set(coin, price)
    return { ...price, stale: now - price.at > STALE_MS }
  }

  /**
   * Queries one source once and stores its quotes.
   * @throws SourceError
   */
  async refresh(source: PriceSource): Promise<void> {
    for (const quote of await source.quotes([...this.coins])) {
      const existing = this.#quotes.get(quote.coin) ?? new Map<string, Quote>()
      this.#quotes.set(quote.coin, existing.set(source.name, quote))
      // The price is computed now, so that a price on which the sources agree is remembered even if
      // it is not requested.
      this.price(quote.coin)
    }
  }

  /**
   * Starts querying the sources. Resolves when every source has responded once, or after a few
   * seconds.
   */
  async start(signal: AbortSignal): Promise<void> {
    const first = this.#sources.map(
      (source) => new Promise<void>((resolve) => void this.#run(source, signal, resolve)),
    )
    await Promise.race([Promise.all(first), this.#environment.sleep(FIRST_ANSWER_MS, signal)])
  }

  async #run(source: PriceSource, signal: AbortSignal, request: () => void): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      let pause = this.#everyMs
      try {
        await this.refresh(source)
        if (failures > 0) this.#log.info({ source: source.name }, 'a price source responds again')
        failures = 0
      } catch (error) {
        failures++
        if (error instanceof SourceError) pause = Math.max(pause, error.waitMs)
        if (failures === 1 || failures % 100 === 0) {
          this.#log.warn(
            { source: source.name, failures, err: reasonOf(error) },
            'a price source does not respond',
          )
        }
      }
      request()
      await this.#environment.sleep(pause, signal)
    }
  }
}
