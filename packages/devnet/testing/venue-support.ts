import type { Devnet } from '../src/devnet.ts'

type More = Record<string, unknown>

/** The parts of a ccxt exchange that the tests use. */
export interface Client {
  symbols: string[]
  urls: { api: Record<string, string> }
  options: Record<string, unknown>
  nonce: () => number
  market: (symbol: string) => {
    precision: { amount: number; price: number }
    limits: Record<string, { min?: number }>
    taker: number
  }
  loadMarkets: () => Promise<unknown>
  fetchTicker: (symbol: string) => Promise<{ bid: number; ask: number; last: number }>
  fetchOrderBook: (
    symbol: string,
    limit?: number,
  ) => Promise<{ bids: [number, number][]; asks: [number, number][] }>
  fetchBalance: () => Promise<Record<string, { free: number; used: number; total: number }>>
  createOrder: (
    symbol: string,
    type: string,
    side: string,
    amount: number,
    price?: number,
    more?: More,
  ) => Promise<Placed>
  fetchOrder: (
    id: string | undefined,
    symbol?: string,
    more?: Record<string, unknown>,
  ) => Promise<Placed>
  fetchOpenOrders: (
    symbol?: string,
    since?: number,
    limit?: number,
    more?: Record<string, unknown>,
  ) => Promise<Placed[]>
  fetchClosedOrders: (
    symbol?: string,
    since?: number,
    limit?: number,
    more?: Record<string, unknown>,
  ) => Promise<Placed[]>
  fetchOrders: (symbol: string) => Promise<Placed[]>
  fetchMyTrades: (
    symbol?: string,
    since?: number,
    limit?: number,
    more?: Record<string, unknown>,
  ) => Promise<Fill[]>
  cancelOrder: (
    id: string | undefined,
    symbol?: string,
    more?: Record<string, unknown>,
  ) => Promise<Placed>
  fetchDepositMethods: (code: string) => Promise<{ method: string }[]>
  createDepositAddress: (code: string, more?: Record<string, unknown>) => Promise<Address>
  fetchDepositAddress: (code: string, more?: Record<string, unknown>) => Promise<Address>
  fetchDeposits: (code?: string) => Promise<Transfer[]>
  fetchWithdrawals: (code?: string) => Promise<Transfer[]>
  withdraw: (
    code: string,
    amount: number,
    address?: string,
    tag?: string,
    more?: Record<string, unknown>,
  ) => Promise<Transfer>
  fetchTradingFees: () => Promise<Record<string, { maker: number; taker: number }>>
  /** Calls one of the protocol's own methods. */
  request: (
    path: string,
    api: string,
    method: string,
    args?: Record<string, unknown>,
  ) => Promise<unknown>
}
interface Placed {
  id: string
  clientOrderId?: string
  status?: string
  filled?: number
  amount?: number
  average?: number
  cost?: number
  trades: { id: string }[]
  info: Record<string, unknown>
}
interface Fill {
  id: string
  order: string
  price: number
  amount: number
  takerOrMaker: string
  fee: { cost: number; currency: string }
}
interface Address {
  address: string
  tag?: string
}
interface Transfer {
  id: string
  currency: string
  network?: string
  amount: number
  status: string
  txid?: string
  address: string
  tag?: string
  fee?: { cost: number }
  info: Record<string, unknown>
}

/** Returns an unmodified ccxt client with other base URLs. */
export async function clientOf(
  exchange: 'kraken' | 'binance',
  devnet: Devnet,
  key: { api_key: string; api_secret: string },
): Promise<Client> {
  const file = new URL(`./src/${exchange}.js`, import.meta.resolve('ccxt')).href
  const module = (await import(file)) as { default: new (options: unknown) => Client }
  const url = `${devnet.url}/exchanges/${exchange}`
  const client = new module.default({
    apiKey: key.api_key,
    secret: key.api_secret,
    enableRateLimit: false,
    ...(exchange === 'binance'
      ? { options: { fetchMarkets: { types: ['spot'] }, fetchMargins: false } }
      : {}),
  })
  for (const name of Object.keys(client.urls.api)) {
    client.urls.api[name] =
      exchange === 'kraken' ? url : `${url}${name.startsWith('sapi') ? '/sapi/v1' : '/api/v3'}`
  }
  // Two calls within one millisecond have different nonces.
  let nonce = Date.now()
  if (exchange === 'kraken') client.nonce = () => (nonce += 1)
  await client.loadMarkets()
  return client
}

/** Sends a command of the operator. */
export async function control<Answer = Record<string, unknown>>(
  devnet: Devnet,
  command: Record<string, unknown>,
): Promise<Answer> {
  const answer = await fetch(`${devnet.url}/control`, {
    method: 'POST',
    body: JSON.stringify(command),
  })
  const body = (await answer.json()) as Answer & { error?: string }
  if (!answer.ok) throw new Error(body.error)
  return body
}

export interface Key extends Record<string, unknown> {
  api_key: string
  api_secret: string
}
export const newKey = async (
  devnet: Devnet,
  exchange: string,
  more: Record<string, unknown> = {},
): Promise<Key> => control<Key>(devnet, { command: 'venue', action: 'key', exchange, ...more })

/** Returns the name and the message of the ccxt error with which a call fails. */
export async function failure(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (error) {
    return `${(error as Error).constructor.name}: ${(error as Error).message}`
  }
  return 'none'
}
