import type { Client } from './client.ts'
import type {
  Fill,
  OrderLookup,
  Market,
  NewOrder,
  OrderRef,
  Permissions,
  VenueTraits,
} from './venue.ts'
import type { CcxtMarket, CcxtTrade } from './client.ts'

/**
 * Meaning of an exchange's error code for a request. `refused`: it was not executed and will not
 * be. `key`: the same, because the key lacks the permission. `later`: it was not executed and may
 * be tried again. `missing`: the order does not exist.
 */
export type ErrorClass = 'refused' | 'key' | 'later' | 'missing'

/**
 * The first entry whose pattern matches gives the meaning and this platform's reason. An error
 * without an entry is unknown.
 */
type CodeTable = readonly (readonly [code: RegExp, meaning: ErrorClass, word: string])[]

/** The specific behaviour of one exchange. */
export interface VenueAdapter {
  traits: VenueTraits
  /** Options of ccxt's client. */
  options: Record<string, unknown>
  /**
   * Whether requests need a nonce that increases from one request to the next, across all
   * processes.
   */
  serial: boolean
  /** Returns `code message` if the response is an error; otherwise null. */
  said(body: unknown): string | null
  codes: CodeTable
  /**
   * Returns false for a response that does not come from this exchange's API, because ccxt parses
   * an empty page as an empty account.
   */
  isSound(body: unknown): boolean
  /** Returns the parameters of ccxt's `createOrder` besides the limit order itself. */
  orderParams(order: NewOrder, now: number): Record<string, unknown>
  find(tools: VenueTools, ref: OrderRef): Promise<OrderLookup>
  /** Returns `id` and parameters of ccxt's `cancelOrder`. */
  cancelBy(ref: OrderRef): { id: string; params: object }
  fills(tools: VenueTools, ref: OrderRef & { venueId: string }): Promise<Fill[]>
  permissions(client: Client): Promise<Permissions>
  /**
   * Returns the exchange's own ID of the account, not of the key or of its owner: accounts with
   * separate balances must have different IDs. Absent: no call of the exchange is known to return
   * one.
   */
  accountId?(client: Client): Promise<unknown>
  /**
   * Returns the coin of a balance with this ccxt code, and whether orders and withdrawals can spend
   * it. Null: the code is a coin itself. `isCoin`: returns whether the exchange lists a coin with a
   * code.
   */
  variant?(
    code: string,
    isCoin: (code: string) => boolean,
  ): { coin: string; isSpendable: boolean } | null
  /** Returns the price step, if ccxt's value is wrong. */
  priceStep?(market: CcxtMarket): string | undefined
  /** ccxt's names of the platform's networks. */
  networks: Readonly<Record<string, string>>
  /** Meaning of those order states of the exchange that ccxt does not translate. */
  states?: Readonly<Record<string, 'open' | 'closed' | 'cancelled' | 'rejected'>>
  /**
   * Returns the deposit address of exactly this network, if ccxt's own call may return that of
   * another network.
   */
  depositAddress?(
    client: Client,
    coin: string,
    network: string,
  ): Promise<{ address?: string; tag?: string }>
  /**
   * Returns the name of a registered address, if the exchange requires one for withdrawals; null:
   * the address is not registered.
   */
  withdrawalKey?(
    client: Client,
    place: { coin: string; network: string; address: string; tag: string | null },
  ): Promise<string | null>
  /**
   * Returns why the account cannot withdraw by the exchange's ordinary call; null if it can.
   * Absent: no such condition is known.
   */
  withdrawalObstacle?(client: Client): Promise<string | null>
  /** Returns the parameters of ccxt's `withdraw`. */
  withdrawParams(clientId: string, network: string, key: string | null): Record<string, unknown>
}

/** Functions that an adapter may use for queries. */
export interface VenueTools {
  client: Client
  /**
   * Returns the result of a query, or null if the exchange reports that the order does not exist.
   */
  unlessMissing<T>(ask: () => Promise<T>): Promise<T | null>
  orderResult(order: import('./client.ts').CcxtOrder, market: Market): OrderLookup
  fill(trade: CcxtTrade, market: Market): Fill
  market(symbol: string): Market
}

/** ccxt's codes of the platform's networks, for networks on which exchanges agree. */
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

/** Reasons that more than one exchange uses. */
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

/** Reads every page of a list until one is short. Throws if the list has more than `most` pages. */
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
 * How long before the time of sending a list query starts, in milliseconds, because clocks differ
 * and ccxt leaves out entries that seem older.
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
