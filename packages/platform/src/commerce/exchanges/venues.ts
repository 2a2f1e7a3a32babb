import { createHash } from 'node:crypto'
import type { Fetch } from '@custody/chains'
import { isExchange, openClient, redacted } from '../../core/ccxt.ts'
import type { Environment } from '../../core/environment.ts'
import { binance } from './binance.ts'
import { bitstamp } from './bitstamp.ts'
import type { Client } from './client.ts'
import { coinbase } from './coinbase.ts'
import { Connector, marketOf, note } from './connector.ts'
import { generic } from './generic.ts'
import { kraken } from './kraken.ts'
import type { VenueAdapter } from './venue-adapter.ts'
import { okx } from './okx.ts'
import { KeyMutex, type Nonces } from './mutex.ts'
import { readUnits } from './units.ts'
import {
  VenueError,
  type Market,
  type OrderBook,
  type Ticker,
  type Venue,
  type VenueTraits,
} from './venue.ts'

/** Exchanges whose error codes, queries and outcomes are known here. */
export const MANNERS: Readonly<Record<string, VenueAdapter>> = {
  kraken,
  binance,
  coinbase,
  okx,
  bitstamp,
}

/** Returns a hash by which a key is recognized without being stored. It includes the exchange. */
export const hashOfKey = (exchange: string, apiKey: string): string =>
  createHash('sha256').update(`${exchange} ${apiKey}`).digest('hex')

const MARKETS_MS = 3_600_000
const CLIENTS_MAX = 200
/**
 * Cache time of public data in milliseconds. Identical queries within this time share one result,
 * so that readers do not use up the exchange's rate limit.
 */
const RECENT_MS = 500
const RECENT_MAX = 1000

export interface Credentials {
  apiKey: string
  apiSecret: string
  passphrase: string | null
}

interface VenuesOptions {
  /** Base URLs by exchange, in place of their public hosts. */
  urls: Readonly<Record<string, string>>
  /** Names of the available exchanges. Null: every exchange that ccxt supports. */
  only: readonly string[] | null
  environment: Environment
  fetch: Fetch
  nonces: Nonces
  timeoutMs?: number
  /** Whether requests are limited to each exchange's rate; absent: only for the real exchanges. */
  paced?: boolean
}

/** An exchange without a key, for public data. All accounts at the exchange share its markets. */
interface Public {
  client: Client
  manner: VenueAdapter
  loadedAt: number
  loading: Promise<void> | null
  markets: Map<string, Market>
}

/** The exchanges, each loaded on first use. */
export class Venues {
  readonly #o: VenuesOptions
  readonly #public = new Map<string, Promise<Public>>()
  readonly #recent = new Map<string, { at: number; answer: Promise<unknown> }>()
  readonly #accounts = new Map<string, { key: string; venue: Promise<Venue> }>()

  constructor(o: VenuesOptions) {
    this.#o = o
  }

  /** Names of the exchanges that may be used here; null: every exchange that ccxt supports. */
  get only(): readonly string[] | null {
    return this.#o.only
  }

  has(exchange: string): boolean {
    return this.#o.only === null ? isExchange(exchange) : this.#o.only.includes(exchange)
  }

  /**
   * Returns every spot market.
   * @throws VenueError
   */
  async markets(exchange: string): Promise<ReadonlyMap<string, Market>> {
    return (await this.#loaded(exchange)).markets
  }

  async ticker(exchange: string, symbol: string): Promise<Ticker> {
    const { client } = await this.#loaded(exchange)
    return this.#call(client, `ticker ${symbol}`, async () => {
      const { bid, ask, last, timestamp } = await client.fetchTicker(symbol)
      return {
        symbol,
        bid: readUnits(bid),
        ask: readUnits(ask),
        last: readUnits(last),
        at: timestamp ?? this.#o.environment.now(),
      }
    })
  }

  /**
   * Returns the order book of a market.
   * @param depth number of levels of each side
   */
  async orderBook(exchange: string, symbol: string, depth: number): Promise<OrderBook> {
    const { client } = await this.#loaded(exchange)
    const book = await this.#call(client, `book ${symbol}`, async () => {
      // Exchanges accept only certain depths, but every exchange accepts a query without a depth.
      const whole = await client.fetchOrderBook(symbol)
      const levels = (side: [string, string][]) =>
        side.flatMap(([price, amount]) => {
          const [at, of] = [readUnits(price), readUnits(amount)]
          return at === null || of === null ? [] : [{ price: at, amount: of }]
        })
      return {
        symbol,
        bids: levels(whole.bids),
        asks: levels(whole.asks),
        at: whole.timestamp ?? this.#o.environment.now(),
      }
    })
    return { ...book, bids: book.bids.slice(0, depth), asks: book.asks.slice(0, depth) }
  }

  /**
   * Returns the connection for an account. The same client is used until the account's credentials
   * change.
   * @param o `key` changes with the credentials; `open` returns them
   * @throws Error of `open`
   */
  account(o: { id: string; exchange: string; key: string; open(): Credentials }): Promise<Venue> {
    const existing = this.#accounts.get(o.id)
    if (existing?.key === o.key) return existing.venue
    const venue = this.#open(o.exchange, o.open())
    this.#accounts.delete(o.id)
    this.#accounts.set(o.id, { key: o.key, venue })
    venue.catch(() => this.#accounts.delete(o.id))
    if (this.#accounts.size > CLIENTS_MAX)
      this.#accounts.delete([...this.#accounts.keys()][0] as string)
    return venue
  }

  /** Returns a connection for credentials that are not stored, to test them. */
  tried(exchange: string, credentials: Credentials): Promise<Venue> {
    return this.#open(exchange, credentials)
  }

  forget(id: string): void {
    this.#accounts.delete(id)
  }

  async traits(exchange: string): Promise<VenueTraits> {
    return (await this.#exchange(exchange)).manner.traits
  }

  async #open(exchange: string, { apiKey, apiSecret, passphrase }: Credentials): Promise<Venue> {
    const shared = await this.#exchange(exchange)
    const { manner } = shared
    const client = await openClient<Client>({
      id: exchange,
      url: this.#o.urls[exchange] ?? null,
      fetch: this.#o.fetch,
      rateLimited: this.#isPaced(exchange),
      onAnswer: note,
      ...(this.#o.timeoutMs === undefined ? {} : { timeoutMs: this.#o.timeoutMs }),
      more: {
        ...manner.options,
        apiKey,
        secret: apiSecret,
        ...(passphrase === null ? {} : { password: passphrase }),
      },
    })
    if (manner.serial) {
      new KeyMutex({
        nonces: this.#o.nonces,
        keyHash: hashOfKey(exchange, apiKey),
        environment: this.#o.environment,
      }).guard(client)
    }
    return new Connector({
      client,
      manner,
      now: () => this.#o.environment.now(),
      ready: async () => {
        const { client: source } = await this.#loaded(exchange)
        if (client.markets !== source.markets) client.setMarketsFromExchange(source)
      },
    })
  }

  #isPaced(exchange: string): boolean {
    return this.#o.paced ?? this.#o.urls[exchange] === undefined
  }

  #exchange(exchange: string): Promise<Public> {
    const existing = this.#public.get(exchange)
    if (existing) return existing
    const opening = (async (): Promise<Public> => {
      if (!this.has(exchange))
        throw new VenueError('unsupported', `the exchange ${exchange} does not exist`)
      const client = await openClient<Client>({
        id: exchange,
        url: this.#o.urls[exchange] ?? null,
        fetch: this.#o.fetch,
        rateLimited: this.#isPaced(exchange),
        ...(MANNERS[exchange] ? { more: MANNERS[exchange].options } : {}),
      })
      return {
        client,
        manner: MANNERS[exchange] ?? generic(client.has, exchange),
        loadedAt: 0,
        loading: null,
        markets: new Map(),
      }
    })()
    this.#public.set(exchange, opening)
    opening.catch(() => this.#public.delete(exchange))
    return opening
  }

  /**
   * Loads an exchange. Its list of markets is reloaded after an hour; if that fails, the old list
   * stays in use.
   */
  async #loaded(exchange: string): Promise<Public> {
    const shared = await this.#exchange(exchange)
    const now = this.#o.environment.now()
    if (shared.markets.size > 0 && Math.abs(now - shared.loadedAt) < MARKETS_MS) return shared
    shared.loading ??= this.#load(shared).finally(() => (shared.loading = null))
    await shared.loading
    return shared
  }

  async #load(shared: Public): Promise<void> {
    try {
      // Without `true`, ccxt would return the first failure permanently.
      await shared.client.loadMarkets(true)
      const markets = Object.values(shared.client.markets ?? {}).filter(({ spot }) => spot === true)
      if (markets.length === 0) throw new Error('the response contains no market')
      shared.markets = new Map(
        markets.map((market) => [market.symbol, marketOf(market, shared.manner)]),
      )
      shared.loadedAt = this.#o.environment.now()
    } catch (error) {
      if (shared.markets.size === 0) throw unavailable(shared.client.id, error)
    }
  }

  /**
   * Runs a query of public data; identical queries within a short time share one result.
   * @param what name of the query, unique within this client
   */
  async #call<T>(client: Client, what: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#o.environment.now()
    const key = `${client.id} ${what}`
    const existing = this.#recent.get(key)
    const answer =
      existing && Math.abs(now - existing.at) < RECENT_MS ? (existing.answer as Promise<T>) : ask()
    if (answer !== existing?.answer) {
      if (this.#recent.size >= RECENT_MAX) this.#recent.clear()
      this.#recent.set(key, { at: now, answer })
      answer.catch(() => this.#recent.delete(key))
    }
    try {
      return await answer
    } catch (error) {
      throw unavailable(client.id, error)
    }
  }
}

const unavailable = (exchange: string, error: unknown): VenueError =>
  error instanceof VenueError
    ? error
    : new VenueError('unavailable', `${exchange}: ${redacted(error)}`)
