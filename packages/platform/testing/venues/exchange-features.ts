import * as ccxt from 'ccxt'

const CALLS = [
  'fetchTicker',
  'fetchOrderBook',
  'fetchBalance',
  'createOrder',
  'createMarketOrder',
  'createPostOnlyOrder',
  'cancelOrder',
  'fetchOrder',
  'fetchOpenOrders',
  'fetchClosedOrders',
  'fetchOrders',
  'fetchOrderTrades',
  'fetchMyTrades',
  'fetchDepositAddress',
  'fetchDeposits',
  'withdraw',
  'fetchWithdrawals',
  'sandbox',
]

interface Exchange {
  name: string
  alias?: boolean
  has: Record<string, unknown>
  requiredCredentials: Record<string, boolean>
}

/**
 * Returns the features of each exchange that ccxt reports for spot trading. Loads all exchanges of
 * ccxt.
 */
export function exchangeFeatures(): {
  exchange: string
  name: string
  features: Record<string, boolean>
}[] {
  const all = ccxt.default as unknown as { exchanges: string[] } & Record<
    string,
    new () => Exchange
  >
  return all.exchanges.flatMap((exchange) => {
    const { name, alias, has, requiredCredentials } = new (all[exchange] as new () => Exchange)()
    if (alias === true || has['spot'] !== true) return []
    // Features that ccxt emulates with other calls also work, but need more calls.
    const features = Object.fromEntries(CALLS.map((call) => [call, has[call] === true]))
    return [
      {
        exchange,
        name,
        features: { ...features, passphrase: requiredCredentials['password'] === true },
      },
    ]
  })
}
