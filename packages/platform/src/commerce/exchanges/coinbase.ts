import { callOwn } from './client.ts'
import { BEFORE_MS, dict, NETWORKS, WORDS, words, type VenueAdapter } from './venue-adapter.ts'
import type { CcxtOrder, CcxtTrade } from './client.ts'

const PAGE = 100
const PAGES_MAX = 20

/** Reads all pages of a cursor-based list, of which ccxt returns only the first. */
async function byCursor<T extends CcxtOrder | CcxtTrade>(
  page: (params: object) => Promise<T[]>,
): Promise<T[]> {
  const all: T[] = []
  let cursor: unknown
  for (let at = 0; at < PAGES_MAX; at++) {
    const next = await page(cursor === undefined ? {} : { cursor })
    all.push(...next)
    cursor = next
      .map(({ info }) => info['cursor'])
      .find((each) => each !== undefined && each !== '')
    if (cursor === undefined || next.length === 0) return all
  }
  throw new Error(`a list is longer than ${PAGES_MAX} pages`)
}

/** Coinbase Advanced Trade; error codes: its NewOrderFailureReason and PreviewFailureReason. */
export const coinbase: VenueAdapter = {
  traits: {
    orders: 'tested',
    absence: { afterMs: 120_000, beforeMs: null },
    passphrase: false,
    postOnly: true,
    timesInForce: ['GTC', 'IOC', 'FOK'],
    withdrawalId: true,
  },
  options: { options: { fetchBalance: 'v3PrivateGetBrokerageAccounts', advanced: true } },
  serial: false,
  said: (body) => {
    const { success, error_response: refused, error, message, errors } = dict(body)
    if (success === false) {
      const {
        error: code,
        preview_failure_reason: preview,
        new_order_failure_reason: reason,
        message: why,
      } = dict(refused)
      return words(code, preview, reason, why ?? dict(body)['failure_reason'])
    }
    const [first] = Array.isArray(errors) ? errors.map(dict) : []
    return error === undefined && !first
      ? null
      : words(error, message, first?.['id'], first?.['message'])
  },
  codes: [
    [/\bnot_found\b|NOT_FOUND/, 'missing', WORDS.missing],
    // An error about a duplicate client ID is not in this list: the order exists, so its state is
    // queried.
    [/INSUFFICIENT_(FUND|FUNDS)\b|INVALID_LEDGER_BALANCE/, 'refused', WORDS.funds],
    [/POST_ONLY/, 'refused', WORDS.maker],
    [
      /NO_LIQUIDITY|INELIGIBLE_PAIR|ORDER_ENTRY_DISABLED|PRODUCT_DISABLED|TRADING_DISABLED/,
      'refused',
      WORDS.closed,
    ],
    [
      /^(UNSUPPORTED_ORDER_CONFIGURATION|INVALID_(SIDE|PRODUCT_ID|SIZE_PRECISION|PRICE_PRECISION|LIMIT_PRICE|REQUEST))/,
      'refused',
      WORDS.order,
    ],
    [/\bPREVIEW_(INVALID|BASE_SIZE|QUOTE_SIZE|MISSING|BREACHED)/, 'refused', WORDS.order],
    [/^COMMANDER_REJECTED_NEW_ORDER/, 'refused', WORDS.order],
    [/^(rate_limit_exceeded|RATE_LIMIT|RESOURCE_EXHAUSTED)/i, 'later', WORDS.limit],
    [
      /^(Unauthorized|unauthorized|authentication_error|invalid_token|invalid_api_key|PERMISSION_DENIED|UNAUTHENTICATED)/,
      'key',
      WORDS.key,
    ],
  ],
  isSound: (body) => typeof body === 'object' && body !== null,
  // ccxt deletes its own name of this parameter, and would send one that the exchange does not
  // know.
  orderParams: ({ clientId, timeInForce, postOnly }) => ({
    client_order_id: clientId,
    ...(timeInForce === 'GTC' ? {} : { timeInForce }),
    ...(postOnly ? { postOnly: true } : {}),
  }),
  async find(
    { client, unlessMissing, orderResult: match, market },
    { venueId, clientId, symbol, sentAt },
  ) {
    if (venueId !== null) {
      const order = await unlessMissing(() => client.fetchOrder(venueId, symbol))
      if (order?.id !== undefined) return match(order, market(symbol))
    }
    const orders = await byCursor((params) =>
      client.fetchOrders(symbol, sentAt - BEFORE_MS, PAGE, params),
    )
    const mine = orders.find(
      (order) => order.clientOrderId === clientId || (venueId !== null && order.id === venueId),
    )
    return mine ? match(mine, market(symbol)) : { kind: 'absent' }
  },
  cancelBy: ({ venueId, clientId }) => ({ id: venueId ?? clientId, params: {} }),
  async fills({ client, fill, market }, { venueId, symbol }) {
    const trades = await byCursor((params) =>
      client.fetchMyTrades(symbol, undefined, PAGE, { order_ids: [venueId], ...params }),
    )
    return trades
      .filter((trade) => trade.order === venueId)
      .map((trade) => fill(trade, market(symbol)))
  },
  async permissions(client) {
    const { can_trade: trade, can_transfer: withdraw } = await callOwn(
      client,
      'v3PrivateGetBrokerageKeyPermissions',
      {},
    )
    const reportOf = (value: unknown) => (typeof value === 'boolean' ? value : null)
    return { trade: reportOf(trade), withdraw: reportOf(withdraw), ip_restricted: null }
  },
  // Balances belong to portfolios, and each key to one of them.
  accountId: async (client) =>
    (await callOwn(client, 'v3PrivateGetBrokerageKeyPermissions', {}))['portfolio_uuid'],
  networks: NETWORKS,
  states: { PENDING: 'open', QUEUED: 'open', CANCEL_QUEUED: 'open', EDIT_QUEUED: 'open' },
  withdrawParams: (clientId, network) => ({ network, idem: clientId }),
}
