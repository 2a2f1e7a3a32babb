import { callOwn, type CcxtTrade } from './client.ts'
import {
  allPages,
  BEFORE_MS,
  dict,
  NETWORKS,
  WORDS,
  words,
  type VenueAdapter,
} from './venue-adapter.ts'

const TRADES_MAX = 1000
const LIST_MAX = 1000

/**
 * Binance spot REST; error codes: binance-spot-api-docs, errors.md. After a 5xx or −1007 the
 * outcome is unknown.
 */
export const binance: VenueAdapter = {
  traits: {
    // The exchange may report a new order as unknown for several minutes; `absence` allows for
    // that.
    orders: 'tested',
    absence: { afterMs: 300_000, beforeMs: null },
    passphrase: false,
    postOnly: true,
    timesInForce: ['GTC', 'IOC', 'FOK'],
    withdrawalId: true,
  },
  options: {
    options: {
      fetchMarkets: { types: ['spot'] },
      fetchMargins: false,
      defaultType: 'spot',
      recvWindow: 5000,
    },
  },
  serial: false,
  said: (body) => {
    const { code, msg } = dict(body)
    return code === undefined || Number(code) >= 0 ? null : words(code, msg)
  },
  codes: [
    [/^-2013\b|^-2026\b/, 'missing', WORDS.missing],
    [/^-2011 .*(Unknown order|UNKNOWN_ORDER)/i, 'missing', WORDS.missing],
    // An error about a duplicate order is not in this list: an order with this client ID exists, so
    // its state is queried.
    [/^-2010 .*insufficient balance/i, 'refused', WORDS.funds],
    [/^-2010 .*(immediately match|would immediately)/i, 'refused', WORDS.maker],
    [/^-2010 .*(Market is closed|not enabled|Rest API trading|too many)/i, 'refused', WORDS.closed],
    [/^-2010 (?!.*duplicate)/i, 'refused', WORDS.order],
    [/^-1013 .*MAX_NUM/, 'refused', WORDS.many],
    [
      /^-1013\b|^-11(?:0\d|1[0-9]|2[0-9]|3[0-9]|4[0-9])\b|^-1106\b|^-1165\b/,
      'refused',
      WORDS.order,
    ],
    [/^-10(?:03|15)\b/, 'later', WORDS.limit],
    [/^-4104\b/, 'refused', 'TRAVEL_RULE_REQUIRED'],
    [/^-1021\b/, 'refused', WORDS.clock],
    [/^-1002\b|^-1022\b|^-2014\b|^-2015\b/, 'key', WORDS.key],
  ],
  isSound: (body) => typeof body === 'object' && body !== null,
  orderParams: ({ clientId, timeInForce, postOnly }) => ({
    clientOrderId: clientId,
    ...(postOnly ? { postOnly: true } : { timeInForce }),
  }),
  async find(
    { client, unlessMissing, orderResult: match, market },
    { venueId, clientId, symbol, sentAt },
  ) {
    const order = await unlessMissing(() =>
      client.fetchOrder(venueId ?? '', symbol, venueId === null ? { clientOrderId: clientId } : {}),
    )
    if (order) return match(order, market(symbol))
    const since = await client.fetchOrders(symbol, sentAt - BEFORE_MS, LIST_MAX)
    const listed = since.find((each) => each.clientOrderId === clientId)
    if (!listed && since.length >= LIST_MAX)
      throw new Error('the list of orders is incomplete: it does not reach the present')
    return listed ? match(listed, market(symbol)) : { kind: 'absent' }
  },
  cancelBy: ({ venueId, clientId }) =>
    venueId === null
      ? { id: '', params: { clientOrderId: clientId } }
      : { id: venueId, params: {} },
  async fills({ client, fill, market }, { venueId, symbol }) {
    const trades = await allPages<CcxtTrade>(
      (last) =>
        client.fetchOrderTrades(
          venueId,
          symbol,
          undefined,
          TRADES_MAX,
          last === undefined ? {} : { fromId: (BigInt(last.id as string) + 1n).toString() },
        ),
      TRADES_MAX,
    )
    return trades.map((trade) => fill(trade, market(symbol)))
  },
  async permissions(client) {
    const { enableWithdrawals, enableSpotAndMarginTrading, ipRestrict } = await callOwn(
      client,
      'sapiGetAccountApiRestrictions',
      {},
    )
    const reportOf = (value: unknown) => (typeof value === 'boolean' ? value : null)
    return {
      trade: reportOf(enableSpotAndMarginTrading),
      withdraw: reportOf(enableWithdrawals),
      ip_restricted: reportOf(ipRestrict),
    }
  },
  accountId: async (client) => (await callOwn(client, 'privateGetAccount', {}))['uid'],
  networks: NETWORKS,
  states: { PENDING_NEW: 'open', PENDING_CANCEL: 'open', EXPIRED_IN_MATCH: 'cancelled' },
  // Flexible Simple Earn: `LDBTC` is BTC that must be redeemed before it can be spent. `LDO` is a
  // coin.
  variant(code, isCoin) {
    const coin = code.slice(2)
    return code.startsWith('LD') && !isCoin(code) && isCoin(coin)
      ? { coin, isSpendable: false }
      : null
  },
  // Accounts of local entities (AE, AU, BH, EU, IN, JP, KZ, NZ, ZA) must use another call, which
  // requires a questionnaire; the ordinary one is rejected with -4104. NIL: no questionnaire.
  async withdrawalObstacle(client) {
    const { questionnaireCountryCode: code } = dict(
      await client.request('localentity/questionnaire-requirements', 'sapi', 'GET', {}),
    )
    if (code === undefined || code === null || code === '' || code === 'NIL') return null
    return `its entity requires the travel-rule questionnaire ${String(code).slice(0, 10)} (localentity/withdraw/apply, field questionnaire) for withdrawals, which is not supported; withdraw on its website`
  },
  withdrawParams: (clientId, network) => ({ network, withdrawOrderId: clientId }),
}
