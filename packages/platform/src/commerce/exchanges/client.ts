import type { CcxtClient } from '../../core/ccxt.ts'

/** The part of ccxt's unified API that is used. Every number is a string. */
export interface Client extends CcxtClient {
  enableRateLimit: boolean
  throttle(cost: number): Promise<void>
  calculateRateLimiterCost(
    api: unknown,
    method: unknown,
    path: string,
    params: unknown,
    config: unknown,
  ): number
  nonce(): number
  /** Calls a path for which ccxt has no method of its own. */
  request(path: string, api: string, method: string, params: object): Promise<unknown>
  fetch2(path: string, api: unknown, ...rest: unknown[]): Promise<unknown>
  setMarketsFromExchange(source: Client): unknown
  market(symbol: string): CcxtMarket
  currency(code: string): { id: string }
  /** Currencies of the exchange by ccxt's code, after its markets were loaded. */
  currencies?: Readonly<Record<string, unknown>>
  markets: Record<string, CcxtMarket> | undefined
  fetchBalance(
    params?: object,
  ): Promise<
    Record<string, unknown> & { total?: Record<string, string>; free?: Record<string, string> }
  >
  fetchTicker(
    symbol: string,
  ): Promise<{ bid?: string; ask?: string; last?: string; timestamp?: number }>
  fetchOrderBook(
    symbol: string,
    limit?: number,
  ): Promise<{ bids: [string, string][]; asks: [string, string][]; timestamp?: number }>
  createOrder(
    symbol: string,
    type: string,
    side: string,
    amount: string,
    price: string,
    params: object,
  ): Promise<CcxtOrder>
  cancelOrder(id: string, symbol: string, params?: object): Promise<unknown>
  fetchOrder(id: string, symbol: string, params?: object): Promise<CcxtOrder>
  fetchOrders(symbol: string, since?: number, limit?: number, params?: object): Promise<CcxtOrder[]>
  fetchOpenOrders(
    symbol: string,
    since?: number,
    limit?: number,
    params?: object,
  ): Promise<CcxtOrder[]>
  fetchClosedOrders(
    symbol: string,
    since?: number,
    limit?: number,
    params?: object,
  ): Promise<CcxtOrder[]>
  fetchOrderTrades(
    id: string,
    symbol: string,
    since?: number,
    limit?: number,
    params?: object,
  ): Promise<CcxtTrade[]>
  fetchMyTrades(
    symbol: string,
    since?: number,
    limit?: number,
    params?: object,
  ): Promise<CcxtTrade[]>
  fetchDepositAddress(
    code: string,
    params?: object,
  ): Promise<{ address?: string; tag?: string; network?: string }>
  fetchDeposits(code: string, since?: number): Promise<CcxtTransfer[]>
  fetchWithdrawals(code: string, since?: number): Promise<CcxtTransfer[]>
  withdraw(
    code: string,
    amount: string,
    address: string,
    tag: string | undefined,
    params: object,
  ): Promise<CcxtTransfer>
  /**
   * Methods that ccxt derives from an exchange's own list of paths, such as
   * `privatePostGetApiKeyInfo`.
   */
  [call: string]: unknown
}

export interface CcxtMarket {
  symbol: string
  base: string
  quote: string
  spot?: boolean
  active?: boolean
  maker?: string
  taker?: string
  precision: { amount?: string; price?: string }
  limits: { amount?: { min?: string; max?: string }; cost?: { min?: string } }
  info: Record<string, unknown>
}
export interface CcxtOrder {
  id?: string
  clientOrderId?: string
  status?: string
  filled?: string
  trades?: CcxtTrade[]
  info: Record<string, unknown>
}
export interface CcxtTrade {
  id?: string
  order?: string
  price?: string
  amount?: string
  cost?: string
  takerOrMaker?: string
  timestamp?: number
  fee?: { cost?: string; currency?: string }
  info: Record<string, unknown>
}
export interface CcxtTransfer {
  id?: string
  txid?: string
  currency?: string
  amount?: string
  address?: string
  tag?: string
  network?: string
  status?: string
  timestamp?: number
  fee?: { cost?: string }
  info: Record<string, unknown>
}

/** Calls one of an exchange's own methods. */
export async function callOwn(
  client: Client,
  call: string,
  params: object,
): Promise<Record<string, unknown>> {
  return (client[call] as (params: object) => Promise<Record<string, unknown>>).call(client, params)
}
