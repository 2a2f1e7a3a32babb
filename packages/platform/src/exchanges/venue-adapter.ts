import type { Client } from './client.ts'
import type { Fill, Found, Market, NewOrder, OrderRef, Permissions, VenueTraits } from './venue.ts'
import type { CcxtMarket, CcxtTrade } from './client.ts'

/**
 * What a venue's own code means for a request: `refused`, it was not done and will not be; `key`,
 * the same, since the key may not; `later`, it was not done and may be tried again; `missing`,
 * there is no such order.
 */
export type ErrorClass = 'refused' | 'key' | 'later' | 'missing'

/**
 * The first line that fits says what is meant, and our word for it. What no line names is unknown.
 */
type CodeTable = readonly (readonly [code: RegExp, meaning: ErrorClass, word: string])[]

/** How one venue differs. */
export interface VenueAdapter {
  traits: VenueTraits
  /** Of ccxt's client. */
  options: Record<string, unknown>
  /**
   * Its requests carry a number that must rise from one to the next, whatever process sends them.
   */
  serial: boolean
  /** `code message` of an answer that is a refusal; null: it is none. */
  said(body: unknown): string | null
  codes: CodeTable
  /**
   * False for an answer that is no answer of this venue: ccxt takes an empty page for an empty
   * account.
   */
  isSound(body: unknown): boolean
  /** Parameters of ccxt's `createOrder` beside the limit itself. */
  orderParams(order: NewOrder, now: number): Record<string, unknown>
  find(tools: VenueTools, ref: OrderRef): Promise<Found>
  /** `id` and parameters of ccxt's `cancelOrder`. */
  cancelBy(ref: OrderRef): { id: string; params: object }
  fills(tools: VenueTools, ref: OrderRef & { venueId: string }): Promise<Fill[]>
  permissions(client: Client): Promise<Permissions>
  /**
   * What a balance under ccxt's code for it really is: the coin, and whether orders and withdrawals
   * can spend it. Null: the code is a coin itself. `isCoin`: whether the exchange lists a coin of
   * that code.
   */
  variant?(
    code: string,
    isCoin: (code: string) => boolean,
  ): { coin: string; isSpendable: boolean } | null
  /** The grid of prices, where it is not what ccxt says. */
  priceStep?(market: CcxtMarket): string | undefined
  /** ccxt's names of our networks. */
  networks: Readonly<Record<string, string>>
  /** How the venue's own words for a state are read that ccxt passes through. */
  states?: Readonly<Record<string, 'open' | 'closed' | 'cancelled' | 'rejected'>>
  /** The deposit address of an exact network, where ccxt's own call may answer another's. */
  depositAddress?(
    client: Client,
    coin: string,
    network: string,
  ): Promise<{ address?: string; tag?: string }>
  /**
   * The name of a registered address, where withdrawals are asked for by one; null: it is not
   * registered.
   */
  withdrawalKey?(
    client: Client,
    place: { coin: string; network: string; address: string; tag: string | null },
  ): Promise<string | null>
  /** Parameters of ccxt's `withdraw`. */
  withdrawParams(clientId: string, network: string, key: string | null): Record<string, unknown>
}

/** What a manner may ask with. */
export interface VenueTools {
  client: Client
  /** What there is, or null where the venue says that there is no such order. */
  unlessMissing<T>(ask: () => Promise<T>): Promise<T | null>
  found(order: import('./client.ts').CcxtOrder, market: Market): Found
  fill(trade: CcxtTrade, market: Market): Fill
  market(symbol: string): Market
}

/** ccxt's codes of our networks, where venues agree. */
export const NETWORKS: Readonly<Record<string, string>> = {
  BTC: 'BTC',
  LTC: 'LTC',
  DASH: 'DASH',
  DOGE: 'DOGE',
  BCH: 'BCH',
  ETH: 'ERC20',
  BSC: 'BEP20',
  POL: 'MATIC',
  BASE: 'BASE',
  ARB: 'ARBITRUM',
  AVAX: 'AVAXC',
  OP_ETH: 'OPTIMISM',
  TRX: 'TRC20',
  XRP: 'XRP',
  XLM: 'XLM',
  ADA: 'ADA',
  SOL: 'SOL',
}

/** Words that more than one venue has. */
export const WORDS = {
  funds: 'INSUFFICIENT_FUNDS',
  key: 'KEY_REFUSED',
  limit: 'RATE_LIMITED',
  order: 'ORDER_INVALID',
  closed: 'MARKET_CLOSED',
  maker: 'WOULD_TAKE',
  clock: 'CLOCK',
  missing: 'ORDER_UNKNOWN',
  account: 'ACCOUNT_RESTRICTED',
  many: 'TOO_MANY_ORDERS',
} as const

/**
 * Every page of a list, until one is short; a list that does not end in so many pages is no answer.
 */
export async function allPages<T>(
  page: (last: T | undefined, at: number) => Promise<T[]>,
  size: number,
  most = 20,
): Promise<T[]> {
  const all: T[] = []
  for (let at = 0; at < most; at++) {
    const next = await page(all.at(-1), at)
    all.push(...next)
    if (next.length < size) return all
  }
  throw new Error(`a list is longer than ${most} pages`)
}

/**
 * How far before the sending a list is asked for: clocks differ, and ccxt leaves out what seems
 * older.
 */
export const BEFORE_MS = 900_000

export const dict = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
export const words = (...values: unknown[]): string =>
  values
    .filter((value) => value !== undefined && value !== null && value !== '')
    .map(String)
    .join(' ')
    .slice(0, 200)
