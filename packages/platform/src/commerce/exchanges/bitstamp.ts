import { dict, list, NETWORKS, WORDS, words, type VenueAdapter } from './venue-adapter.ts'

/**
 * Bitstamp v2; error codes: its "Error codes" (`response_code`). ccxt does not parse post-only and
 * time-in-force from its orders.
 */
export const bitstamp: VenueAdapter = {
  traits: {
    orders: 'tested',
    absence: { afterMs: 120_000, beforeMs: null },
    passphrase: false,
    postOnly: true,
    timesInForce: ['GTC', 'IOC', 'FOK'],
    withdrawalId: false,
  },
  options: {},
  serial: false,
  said: (body) => {
    const { status, error, reason, code, response_code: own } = dict(body)
    if (status !== 'error' && error === undefined) return null
    const why =
      typeof reason === 'object' && reason !== null
        ? Object.values(reason).flatMap((each) => list(each))
        : [reason]
    return words(own, code, typeof error === 'string' ? error : undefined, ...why)
  },
  codes: [
    [/^404\.002\b|Order not found/, 'missing', WORDS.missing],
    [/You (have|need|can) only|Check your account balance/, 'refused', WORDS.funds],
    [
      /^(400\.002 )?.*(Minimum order size|Ensure that there are no more|Price is more than|Ensure this value)/,
      'refused',
      WORDS.order,
    ],
    [/^400\.(009|012|046)\b/, 'refused', WORDS.funds],
    [/^400\.029\b|maker-or-cancel/i, 'refused', WORDS.maker],
    [/^400\.(002|067)\b.*(rate|limit exceeded)|^429|Request rate limit/i, 'later', WORDS.limit],
    [
      /^(403\.00[1-9]|401\.\d+)\b|\bAPI00(0[1235679]|1[01278])\b|API key not found|No permission found|IP address not allowed/,
      'key',
      WORDS.key,
    ],
    [/\bAPI0004\b|Invalid nonce/, 'later', WORDS.limit],
    // 400.019 is not in this list: the client ID was used before, so the order exists.
    [/^400\.(?!019)\d{3}\b/, 'refused', WORDS.order],
  ],
  isSound: (body) => typeof body === 'object' && body !== null,
  orderParams: ({ clientId, timeInForce, postOnly }) => ({
    client_order_id: clientId,
    ...(postOnly ? { moc_order: 'True' } : {}),
    ...(timeInForce === 'IOC' ? { ioc_order: 'True' } : {}),
    ...(timeInForce === 'FOK' ? { fok_order: 'True' } : {}),
  }),
  async find({ client, unlessMissing, orderResult: match, market }, { venueId, clientId, symbol }) {
    const order = await unlessMissing(() =>
      client.fetchOrder(
        venueId ?? '',
        symbol,
        venueId === null ? { client_order_id: clientId } : {},
      ),
    )
    if (order === null) return { kind: 'absent' }
    const answer = match({ ...order, filled: undefined } as never, market(symbol))
    if (answer.kind === 'absent' || !answer.order.fills) return answer
    return {
      kind: 'found',
      order: {
        ...answer.order,
        filled: answer.order.fills.reduce((sum, { amount }) => sum + amount, 0n),
      },
    }
  },
  cancelBy: ({ venueId, clientId }) =>
    venueId === null
      ? { id: '', params: { id: undefined, client_order_id: clientId } }
      : { id: venueId, params: {} },
  async fills({ client, fill, market }, { venueId, symbol }) {
    const order = await client.fetchOrder(venueId, symbol)
    return (order.trades ?? []).map((trade) => fill(trade, market(symbol)))
  },
  permissions: async () => ({ trade: null, withdraw: null, ip_restricted: null }),
  // No `accountId`: only the response with a WebSocket token contains a user ID, and it is not
  // documented whether sub-accounts have IDs of their own.
  networks: NETWORKS,
  states: { Expired: 'cancelled', 'Cancel pending': 'open', canceling: 'open' },
  withdrawParams: (_clientId, network) => ({ network }),
}
