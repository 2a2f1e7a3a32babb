import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatAmount, parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { Journal } from '../journal.ts'
import { REGISTRY } from '../registry.ts'

const PRICE_SOURCES = ['COINGECKO', 'KRAKEN', 'BINANCE'] as const
export type PriceSourceName = (typeof PRICE_SOURCES)[number]

/** Initial local prices: round numbers of the asset registry, unrelated to any market. */
const STARTING: Readonly<Record<string, string>> = Object.fromEntries(
  REGISTRY.coins.map((coin) => [coin.ticker, coin.local_price]),
)

export const PRICE_DECIMALS = 12

interface Entry {
  coin: string
  price: string
  source: PriceSourceName | null
}

/**
 * Prices of the local sources for each coin, in USD with twelve decimals. They are stored and
 * survive restarts.
 */
export class Quotes {
  readonly #prices: Record<PriceSourceName, Map<string, bigint>>
  readonly #journal: Journal<Entry>

  private constructor(journal: Journal<Entry>, records: Entry[]) {
    const start = () =>
      new Map(
        Object.entries(STARTING).map(([coin, price]) => [coin, parseAmount(price, PRICE_DECIMALS)]),
      )
    this.#prices = { COINGECKO: start(), KRAKEN: start(), BINANCE: start() }
    this.#journal = journal
    for (const record of records) this.#apply(record)
  }

  static open(home: string): Quotes {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<Entry>(join(home, 'prices.journal'))
    return new Quotes(journal, records)
  }

  /** Sets the price of a coin at one source, or at all. */
  set(coin: unknown, price: unknown, source: unknown): { coin: string; price: string } {
    if (typeof coin !== 'string' || !Object.hasOwn(STARTING, coin)) {
      throw new RequestError(
        `coin ${JSON.stringify(coin)} has no price here; must be one of ${Object.keys(STARTING).join(', ')}`,
      )
    }
    const knownSource = PRICE_SOURCES.find((each) => each === source) ?? null
    if (knownSource === null && source !== null && source !== undefined) {
      throw new RequestError(
        `source ${JSON.stringify(source)} is unknown; must be one of ${PRICE_SOURCES.join(', ')}`,
      )
    }
    const entry = {
      coin,
      price: formatAmount(parseAmount(price, PRICE_DECIMALS), PRICE_DECIMALS),
      source: knownSource,
    }
    this.#journal.append([entry])
    this.#apply(entry)
    return { coin, price: String(price) }
  }

  get(source: PriceSourceName, coin: string): bigint | undefined {
    return this.#prices[source].get(coin)
  }

  close(): void {
    this.#journal.close()
  }

  #apply({ coin, price, source }: Entry): void {
    for (const each of source === null ? PRICE_SOURCES : [source])
      this.#prices[each].set(coin, parseAmount(price, PRICE_DECIMALS))
  }
}
