import { callOwn, type CcxtOrder } from './client.ts'
import {
  BEFORE_MS,
  dict,
  list,
  NETWORKS,
  WORDS,
  words,
  type VenueAdapter,
} from './venue-adapter.ts'
import { VenueError } from './venue.ts'

/**
 * Deadline in milliseconds after which the exchange itself rejects a request that has not arrived;
 * it allows 2 to 60 seconds.
 */
const DEADLINE_MS = 20_000
const TRADES_AT_ONCE = 20

/**
 * Patterns of a network's name in the exchange's funding methods. Exactly one method must match.
 */
const METHODS: Readonly<Record<string, RegExp>> = {
  BTC: /^Bitcoin$/,
  LTC: /^Litecoin$/,
  DASH: /^Dash$/,
  DOGE: /^Dogecoin$/,
  BCH: /^Bitcoin Cash$/,
  ETH: /^(Ether|Ethereum)( \(Hex\))?$|\((ERC20|Ethereum)\)|- Ethereum\b/,
  TRX: /^Tron$|\((TRC20|Tron)\)|- Tron\b/,
  XRP: /^Ripple( XRP)?$|^XRP$/,
  XLM: /^Stellar( XLM)?$/,
  ADA: /^(ADA|Cardano)$/,
  SOL: /^Solana$|\(SPL\)|\(Solana\)|- Solana\b/,
  ARB: /Arbitrum/,
  BASE: /\bBase\b/,
  OP_ETH: /Optimism/,
  POL: /Polygon/,
  AVAX: /Avalanche/,
  BSC: /\bBSC\b|BEP20|BNB Smart Chain/,
}

/**
 * Balances of a coin that earn rewards or are on hold: `BTC.F` in Kraken Rewards, which can be
 * spent as usual; `.B` and `.S` bonded and staked (`DOT28.S`: for 28 days), `.M` opted in to
 * rewards, `.P` parachains, `.HOLD` money on hold. `.T` is a separate token.
 */
const VARIANT = /^([A-Z0-9]+?)(?:\d\d)?\.(F|B|S|M|P|HOLD)$/

/** Kraken spot REST; error codes: docs.kraken.com, "Error messages". */
export const kraken: VenueAdapter = {
  traits: {
    orders: 'tested',
    absence: { afterMs: 90_000, beforeMs: null },
    passphrase: false,
    secretIsBase64: true,
    postOnly: true,
    timesInForce: ['GTC', 'IOC', 'FOK'],
    withdrawalId: false,
  },
  options: {},
  serial: true,
  said: (body) => {
    const errors = list(dict(body)['error'])
    return errors.length === 0 ? null : words(...errors)
  },
  codes: [
    [/^EOrder:Unknown order/, 'missing', WORDS.missing],
    [/^EOrder:Insufficient (funds|margin)/, 'refused', WORDS.funds],
    [/^EOrder:Post only/, 'refused', WORDS.maker],
    [/^EOrder:(Orders limit|Positions limit|Scheduled orders limit)/, 'refused', WORDS.many],
    [
      /^EOrder:(Order minimum|Cost minimum|Tick size|Invalid price|Invalid order|Margin|Cannot open|Reduce only|Limit price|Domain)/,
      'refused',
      WORDS.order,
    ],
    [/^EOrder:(Trading agreement|Not permitted|User)/, 'refused', WORDS.account],
    [
      /^EOrder:Rate limit exceeded|^EAPI:Rate limit exceeded|^EGeneral:Temporary lockout|^EAPI:Invalid nonce/,
      'later',
      WORDS.limit,
    ],
    [
      /^EAPI:(Invalid key|Invalid signature|Feature disabled)|^EGeneral:Permission denied|^EAuth:/,
      'key',
      WORDS.key,
    ],
    [/^EAccount:/, 'key', WORDS.account],
    [/^EGeneral:Invalid arguments|^EQuery:|^EGeneral:Unknown method/, 'refused', WORDS.order],
    [/^EService:Market in (cancel_only|post_only|limit_only)/, 'refused', WORDS.closed],
    [/^EService:Deadline elapsed/, 'refused', WORDS.clock],
  ],
  isSound: (body) => 'result' in dict(body),
  orderParams: ({ clientId, timeInForce, postOnly }, now) => ({
    // The fee is always charged in the quote coin, for both sides, so that the booked amounts do
    // not depend on a default.
    clientOrderId: clientId,
    oflags: 'fciq',
    deadline: new Date(now + DEADLINE_MS).toISOString(),
    ...(timeInForce === 'GTC' ? {} : { timeInForce }),
    ...(postOnly ? { postOnly: true } : {}),
  }),
  async find({ client, unlessMissing, orderResult: match, market }, ref) {
    const { venueId, symbol, clientId, sentAt } = ref
    if (venueId !== null) {
      const order = await unlessMissing(() => client.fetchOrder(venueId, symbol))
      if (order) return match({ ...order, trades: undefined } as CcxtOrder, market(symbol))
    }
    // ccxt's fetchOrder would send the client ID in another field, so the order lists are queried
    // with it.
    const params = { clientOrderId: clientId }
    const mine = (orders: CcxtOrder[]) =>
      orders.find((order) => order.clientOrderId === clientId || order.id === venueId)
    const order =
      mine(await client.fetchOpenOrders(symbol, undefined, undefined, params)) ??
      mine(await client.fetchClosedOrders(symbol, sentAt - BEFORE_MS, undefined, params))
    return order
      ? match({ ...order, trades: undefined } as CcxtOrder, market(symbol))
      : { kind: 'absent' }
  },
  cancelBy: ({ venueId, clientId }) =>
    venueId === null
      ? { id: '', params: { clientOrderId: clientId } }
      : { id: venueId, params: {} },
  async fills({ client, fill, market }, { venueId, symbol }) {
    const order = await client.fetchOrder(venueId, symbol)
    const ids = (order.trades ?? []).map(({ id }) => id).filter((id) => id !== undefined)
    const trades = []
    for (let at = 0; at < ids.length; at += TRADES_AT_ONCE) {
      trades.push(
        ...(await client.fetchOrderTrades(venueId, symbol, undefined, undefined, {
          trades: ids.slice(at, at + TRADES_AT_ONCE),
        })),
      )
    }
    return trades.map((trade) => fill(trade, market(symbol)))
  },
  async permissions(client) {
    const { result } = await callOwn(client, 'privatePostGetApiKeyInfo', {})
    const { permissions, ipAllowlist, ip_allowlist: allowed } = dict(result)
    const granted = new Set(list(permissions).map(String))
    if (granted.size === 0) return { trade: null, withdraw: null, ip_restricted: null }
    const addresses = ipAllowlist ?? allowed
    return {
      trade: granted.has('modify-trades'),
      withdraw: granted.has('withdraw-funds'),
      ip_restricted: Array.isArray(addresses) ? addresses.length > 0 : null,
    }
  },
  // The public account ID (IIBAN), which each account and sub-account has of its own.
  async accountId(client) {
    return dict((await callOwn(client, 'privatePostGetApiKeyInfo', {}))['result'])['iban']
  },
  variant(code) {
    // Ether that was staked before withdrawals of it were possible.
    if (code === 'ETH2') return { coin: 'ETH', isSpendable: false }
    const [, coin, kind] = VARIANT.exec(code) ?? []
    return coin === undefined
      ? null
      : { coin: coin === 'ETH2' ? 'ETH' : coin, isSpendable: kind === 'F' }
  },
  // The exchange's prices may have more decimals than its price step allows.
  priceStep: ({ info }) =>
    info['tick_size'] === undefined ? undefined : String(info['tick_size']),
  networks: NETWORKS,
  // Queries the address of this network only. If the exchange has a method for the coin on another
  // network, ccxt might return an address of that network.
  async depositAddress(client, coin, network) {
    const asset = client.currency(coin).id
    const { result } = await callOwn(client, 'privatePostDepositMethods', { asset })
    const names = list(result).map((method) => String(dict(method)['method']))
    const fitting = names.filter((name) => METHODS[network]?.test(name))
    if (fitting.length !== 1) {
      throw new VenueError(
        'unsupported',
        `kraken has the deposit methods ${names.join(', ')} for ${coin}, of which exactly one must be for ${network}`,
      )
    }
    const ask = async (more: object) =>
      list(
        (
          await callOwn(client, 'privatePostDepositAddresses', {
            asset,
            method: fitting[0],
            ...more,
          })
        )['result'],
      ).map(dict)
    const first = (await ask({}))[0] ?? (await ask({ new: true }))[0] ?? {}
    const tag = first['tag'] ?? first['memo']
    return {
      address: String(first['address'] ?? ''),
      ...(tag === undefined || tag === null ? {} : { tag: String(tag) }),
    }
  },
  async withdrawalKey(client, { coin, network, address, tag }) {
    const { result } = await callOwn(client, 'privatePostWithdrawAddresses', {
      asset: client.currency(coin).id,
    })
    const isThis = (each: Record<string, unknown>) =>
      each['address'] === address &&
      METHODS[network]?.test(String(each['method'])) === true &&
      String(each['tag'] ?? each['memo'] ?? '') === (tag ?? '')
    const match = list(result).map(dict).find(isThis)
    return match === undefined ? null : String(match['key'])
  },
  withdrawParams: (_clientId, _network, key) => ({ key }),
}
