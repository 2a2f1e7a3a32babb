import { callOwn, type CcxtTrade } from './client.ts'
import { allPages, dict, list, NETWORKS, WORDS, words, type VenueAdapter } from './venue-adapter.ts'

const TRADES_MAX = 100
const HOUR_MS = 3_600_000

/**
 * OKX v5; error codes: its "Error Code". The exchange deletes an order that was cancelled without a
 * fill after two hours.
 */
export const okx: VenueAdapter = {
  traits: {
    orders: 'tested',
    absence: { afterMs: 120_000, beforeMs: 2 * HOUR_MS - 600_000 },
    passphrase: true,
    postOnly: true,
    timesInForce: ['GTC', 'IOC', 'FOK'],
    withdrawalId: true,
  },
  options: {
    options: {
      fetchMarkets: { types: ['spot'] },
      defaultType: 'spot',
      createOrder: 'privatePostTradeOrder',
    },
  },
  serial: false,
  said: (body) => {
    const { code, msg, data } = dict(body)
    const { sCode, sMsg } = dict(list(data)[0])
    if (sCode !== undefined && sCode !== '' && String(sCode) !== '0') return words(sCode, sMsg)
    return code === undefined || String(code) === '0' ? null : words(code, msg)
  },
  codes: [
    [/^51603\b|^5140[0-2]\b|^51410\b/, 'missing', WORDS.missing],
    [/^51008\b|^51119\b|^51131\b/, 'refused', WORDS.funds],
    [/^50011\b|^50061\b/, 'later', WORDS.limit],
    [/^50102\b|^50112\b/, 'refused', WORDS.clock],
    [/^501(?:0[013-9]|1[0-4]|19|20)\b|^5000[789]\b|^50027\b|^50030\b/, 'key', WORDS.key],
    // 51016 is not in this list: the client ID was used before, so the order exists. 51149 is a
    // timeout.
    [/^51(?!016|149)(?:0\d\d|1\d\d)\b/, 'refused', WORDS.order],
    [/^5000[02]\b|^50006\b|^5001[456]\b|^50024\b/, 'refused', WORDS.order],
  ],
  isSound: (body) => 'code' in dict(body),
  orderParams: ({ clientId, timeInForce, postOnly }) => ({
    clientOrderId: clientId,
    ...(postOnly ? { postOnly: true } : timeInForce === 'GTC' ? {} : { timeInForce }),
  }),
  async find({ client, unlessMissing, orderResult: match, market }, { venueId, clientId, symbol }) {
    const order = await unlessMissing(() =>
      client.fetchOrder(venueId ?? '', symbol, venueId === null ? { clientOrderId: clientId } : {}),
    )
    return order ? match(order, market(symbol)) : { kind: 'absent' }
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
          last === undefined ? {} : { after: last.info['billId'] },
        ),
      TRADES_MAX,
    )
    return trades.map((trade) => fill(trade, market(symbol)))
  },
  async permissions(client) {
    const { data } = await callOwn(client, 'privateGetAccountConfig', {})
    const { perm, ip } = dict(list(data)[0])
    if (typeof perm !== 'string') return { trade: null, withdraw: null, ip_restricted: null }
    const granted = new Set(perm.split(','))
    return {
      trade: granted.has('trade'),
      withdraw: granted.has('withdraw'),
      ip_restricted: typeof ip === 'string' ? ip !== '' : null,
    }
  },
  // `uid` is the ID of the key's own account; `mainUid` would be the same for its sub-accounts.
  async accountId(client) {
    const { data } = await callOwn(client, 'privateGetAccountConfig', {})
    return dict(list(data)[0])['uid']
  },
  networks: NETWORKS,
  withdrawParams: (clientId, network) => ({ network, clientId }),
}
