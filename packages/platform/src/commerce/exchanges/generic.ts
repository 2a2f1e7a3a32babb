import { callOwn, type Client } from './client.ts'
import { BEFORE_MS, dict, NETWORKS, WORDS, type VenueAdapter } from './venue-adapter.ts'

/**
 * Calls of other exchanges that return the ID of the key's own account, which differs between an
 * account and its sub-accounts: Bybit's "Get API Key Information" and CoinEx's "Get User Account
 * Info".
 */
export const ACCOUNT_IDS: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  bybit: async (client) =>
    dict((await callOwn(client, 'privateGetV5UserQueryApi', {}))['result'])['userID'],
  coinex: async (client) =>
    dict((await callOwn(client, 'v2PrivateGetAccountInfo', {}))['data'])['user_id'],
}

/**
 * Adapter for every other exchange, based on ccxt's description of it. Its error codes are not
 * known here: an error that ccxt classifies as a rejection only counts as one if the exchange sent
 * a response (`RefusedByClass`), and a missing order proves nothing.
 */
export function generic(has: Readonly<Record<string, unknown>>, exchange = ''): VenueAdapter {
  const accountId = ACCOUNT_IDS[exchange]
  const lists =
    has['fetchOpenOrders'] === true &&
    (has['fetchClosedOrders'] === true || has['fetchOrders'] === true)
  const isTradable =
    has['createOrder'] === true &&
    has['cancelOrder'] === true &&
    has['fetchOrder'] === true &&
    lists &&
    (has['fetchOrderTrades'] === true || has['fetchMyTrades'] === true)
  return {
    traits: {
      orders: isTradable ? 'generic' : 'none',
      absence: null,
      passphrase: false,
      postOnly: false,
      timesInForce: ['GTC'],
      withdrawalId: false,
    },
    options: { options: { defaultType: 'spot' } },
    serial: false,
    said: () => null,
    codes: [],
    isSound: (body) => typeof body === 'object' && body !== null,
    orderParams: ({ clientId }) => ({ clientOrderId: clientId }),
    async find(
      { client, unlessMissing, orderResult: match, market },
      { venueId, clientId, symbol, sentAt },
    ) {
      if (venueId !== null) {
        const order = await unlessMissing(() => client.fetchOrder(venueId, symbol))
        if (order) return match(order, market(symbol))
      }
      const rest = (from: Client) =>
        has['fetchClosedOrders'] === true
          ? from.fetchClosedOrders(symbol, sentAt - BEFORE_MS)
          : from.fetchOrders(symbol, sentAt - BEFORE_MS)
      const orders = [...(await client.fetchOpenOrders(symbol)), ...(await rest(client))]
      const mine = orders.find(
        (order) => order.clientOrderId === clientId || (venueId !== null && order.id === venueId),
      )
      return mine ? match(mine, market(symbol)) : { kind: 'absent' }
    },
    cancelBy: ({ venueId, clientId }) => ({
      id: venueId ?? '',
      params: venueId === null ? { clientOrderId: clientId } : {},
    }),
    async fills({ client, fill, market }, { venueId, symbol, sentAt }) {
      const trades =
        has['fetchOrderTrades'] === true
          ? await client.fetchOrderTrades(venueId, symbol)
          : (await client.fetchMyTrades(symbol, sentAt - BEFORE_MS)).filter(
              (trade) => trade.order === venueId,
            )
      return trades.map((trade) => fill(trade, market(symbol)))
    },
    permissions: async () => ({ trade: null, withdraw: null, ip_restricted: null }),
    ...(accountId ? { accountId } : {}),
    networks: NETWORKS,
    withdrawParams: (_clientId, network) => ({ network }),
  }
}

/**
 * ccxt's error classes for rejections, by name, for exchanges whose error codes are not known here.
 */
export const REFUSED_BY_CLASS: Readonly<Record<string, string>> = {
  InsufficientFunds: WORDS.funds,
  InvalidOrder: WORDS.order,
  BadSymbol: WORDS.order,
  AuthenticationError: WORDS.key,
  PermissionDenied: WORDS.key,
  AccountSuspended: WORDS.account,
  OrderImmediatelyFillable: WORDS.maker,
}
