import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openClient, redacted } from '../../core/ccxt.ts'
import { systemEnvironment } from '../../core/environment.ts'
import type { Client } from './client.ts'
import { ceilTo, floorTo, divide, readUnits, showUnits, times } from './units.ts'
import type { NewOrder } from './venue.ts'
import { MANNERS, Venues } from './venues.ts'
import * as fc from '../../../../../testing/property.ts'
import {
  memoryNonces,
  ScriptedExchange,
  stagedVenue,
  type Scripted,
} from '../../../testing/venues/venue-scripts.ts'

const ID = '0123456789abcdef0123456789abcdef'
const NOW = Date.now()
const units = (text: string) => readUnits(text) as bigint
const SYMBOLS: Record<string, string> = {
  kraken: 'BTC/USD',
  binance: 'BTC/USDT',
  coinbase: 'BTC/USD',
  okx: 'BTC/USDT',
  bitstamp: 'BTC/USD',
}
const PLACE: Record<string, string> = {
  kraken: '/0/private/AddOrder',
  binance: '/api/v3/order',
  coinbase: '/api/v3/brokerage/orders',
  okx: '/api/v5/trade/order',
  bitstamp: '/api/v2/buy/btcusd/',
}
const orderAt = (exchange: string, more: Partial<NewOrder> = {}): NewOrder => ({
  clientId: ID,
  symbol: SYMBOLS[exchange] as string,
  side: 'buy',
  amount: units('0.5'),
  price: units('37500'),
  timeInForce: 'GTC',
  postOnly: false,
  ...more,
})
const krakenError = (...error: string[]) => ({ body: { error } })
const binanceError = (code: number, msg: string, status = 400) => ({ status, body: { code, msg } })
const coinbaseError = (error: string, preview?: string) => ({
  body: { success: false, error_response: { error, message: '', preview_failure_reason: preview } },
})
const okxError = (sCode: string, code = '1') => ({
  body: { code, msg: '', data: [{ clOrdId: ID, ordId: '', sCode, sMsg: 'why' }] },
})
const bitstampError = (response_code: string, why: string, status = 400) => ({
  status,
  body: { status: 'error', reason: { __all__: [why] }, response_code },
})

/** Responses of each venue to an order, and the outcome that each response proves. */
const PLACED: Record<string, [what: string, answer: Scripted, known: string][]> = {
  kraken: [
    [
      'taken',
      { body: { error: [], result: { descr: { order: 'buy' }, txid: ['OAAAAA-BBBBB-CCCCCC'] } } },
      'accepted OAAAAA-BBBBB-CCCCCC',
    ],
    ['funds', krakenError('EOrder:Insufficient funds'), 'refused INSUFFICIENT_FUNDS'],
    ['minimum', krakenError('EOrder:Order minimum not met'), 'refused ORDER_INVALID'],
    ['cost', krakenError('EOrder:Cost minimum not met'), 'refused ORDER_INVALID'],
    ['tick', krakenError('EOrder:Tick size check failed'), 'refused ORDER_INVALID'],
    ['post only', krakenError('EOrder:Post only order'), 'refused WOULD_TAKE'],
    ['key', krakenError('EAPI:Invalid key'), 'refused KEY_REFUSED'],
    ['permission', krakenError('EGeneral:Permission denied'), 'refused KEY_REFUSED'],
    ['nonce', krakenError('EAPI:Invalid nonce'), 'later RATE_LIMITED'],
    ['too fast', krakenError('EAPI:Rate limit exceeded'), 'later RATE_LIMITED'],
    ['too late', krakenError('EService:Deadline elapsed'), 'refused CLOCK'],
    ['time-out', krakenError('EService:Timeout'), 'unknown'],
    ['away', krakenError('EService:Unavailable'), 'unknown'],
    ['busy', krakenError('EService:Busy'), 'unknown'],
    ['internal', krakenError('EGeneral:Internal error'), 'unknown'],
    ['a code of tomorrow', krakenError('ENew:Something'), 'unknown'],
    [
      'a refusal under a 500',
      { status: 500, body: { error: ['EOrder:Insufficient funds'] } },
      'unknown',
    ],
    ['a page', { body: '<html>maintenance</html>' }, 'unknown'],
    ['nothing', { body: '' }, 'unknown'],
    ['no id', { body: { error: [], result: {} } }, 'unknown'],
    ['502', { status: 502, body: 'bad gateway' }, 'unknown'],
    ['cut', 'cut', 'unknown'],
    ['stalled body', 'stall', 'unknown'],
  ],
  binance: [
    [
      'taken',
      {
        body: {
          symbol: 'BTCUSDT',
          orderId: 28,
          clientOrderId: ID,
          transactTime: 1,
          status: 'NEW',
          origQty: '0.5',
          executedQty: '0',
          price: '37500',
          type: 'LIMIT',
          side: 'BUY',
          fills: [],
        },
      },
      'accepted 28',
    ],
    [
      'funds',
      binanceError(-2010, 'Account has insufficient balance for requested action.'),
      'refused INSUFFICIENT_FUNDS',
    ],
    [
      'post only',
      binanceError(-2010, 'Order would immediately match and take.'),
      'refused WOULD_TAKE',
    ],
    ['duplicate: it is there', binanceError(-2010, 'Duplicate order sent.'), 'unknown'],
    ['filter', binanceError(-1013, 'Filter failure: NOTIONAL'), 'refused ORDER_INVALID'],
    ['lot size', binanceError(-1013, 'Filter failure: LOT_SIZE'), 'refused ORDER_INVALID'],
    [
      'key',
      binanceError(-2015, 'Invalid API-key, IP, or permissions for action.', 401),
      'refused KEY_REFUSED',
    ],
    [
      'clock',
      binanceError(-1021, 'Timestamp for this request is outside of the recvWindow.'),
      'refused CLOCK',
    ],
    ['too fast', binanceError(-1003, 'Too many requests.', 429), 'later RATE_LIMITED'],
    [
      'time-out',
      binanceError(-1007, 'Timeout waiting for response from backend server.', 408),
      'unknown',
    ],
    ['5xx with a code', binanceError(-1000, 'An unknown error', 503), 'unknown'],
    ['5xx with a refusal', binanceError(-2010, 'Account has insufficient balance', 500), 'unknown'],
    ['overloaded', binanceError(-1008, 'Server is currently overloaded', 503), 'unknown'],
    ['a page', { body: '<html>' }, 'unknown'],
    ['cut', 'cut', 'unknown'],
  ],
  coinbase: [
    [
      'taken',
      {
        body: {
          success: true,
          success_response: {
            order_id: 'cb-1',
            product_id: 'BTC-USD',
            side: 'BUY',
            client_order_id: ID,
          },
        },
      },
      'accepted cb-1',
    ],
    ['funds', coinbaseError('INSUFFICIENT_FUND'), 'refused INSUFFICIENT_FUNDS'],
    [
      'funds in the preview',
      coinbaseError('UNKNOWN_FAILURE_REASON', 'PREVIEW_INSUFFICIENT_FUND'),
      'refused INSUFFICIENT_FUNDS',
    ],
    ['post only', coinbaseError('INVALID_LIMIT_PRICE_POST_ONLY'), 'refused WOULD_TAKE'],
    ['precision', coinbaseError('INVALID_SIZE_PRECISION'), 'refused ORDER_INVALID'],
    ['unknown reason', coinbaseError('UNKNOWN_FAILURE_REASON'), 'unknown'],
    ['key', { status: 401, body: 'Unauthorized' }, 'refused KEY_REFUSED'],
    ['500', { status: 500, body: { error: 'internal', message: 'oops' } }, 'unknown'],
    ['cut', 'cut', 'unknown'],
  ],
  okx: [
    [
      'taken',
      { body: { code: '0', msg: '', data: [{ clOrdId: ID, ordId: '312', sCode: '0', sMsg: '' }] } },
      'accepted 312',
    ],
    ['funds', okxError('51008'), 'refused INSUFFICIENT_FUNDS'],
    [
      'funds, with a code that does not throw',
      okxError('51008', '2'),
      'refused INSUFFICIENT_FUNDS',
    ],
    ['minimum', okxError('51020'), 'refused ORDER_INVALID'],
    ['duplicate: it is there', okxError('51016'), 'unknown'],
    ['time-out of the order', okxError('51149'), 'unknown'],
    ['time-out', { body: { code: '50004', msg: 'Endpoint request timeout', data: [] } }, 'unknown'],
    ['busy', { body: { code: '50013', msg: 'System is busy', data: [] } }, 'unknown'],
    [
      'too fast',
      { status: 429, body: { code: '50011', msg: 'Too Many Requests', data: [] } },
      'later RATE_LIMITED',
    ],
    [
      'key',
      { status: 401, body: { code: '50111', msg: 'Invalid OK-ACCESS-KEY', data: [] } },
      'refused KEY_REFUSED',
    ],
    [
      'clock',
      { status: 401, body: { code: '50102', msg: 'Timestamp request expired', data: [] } },
      'refused CLOCK',
    ],
    ['cut', 'cut', 'unknown'],
  ],
  bitstamp: [
    [
      'taken',
      {
        body: {
          id: '1234',
          datetime: '2026-01-01 00:00:00',
          type: '0',
          price: '37500',
          amount: '0.5',
          client_order_id: ID,
          market: 'BTC/USD',
        },
      },
      'accepted 1234',
    ],
    [
      'funds',
      bitstampError(
        '400.009',
        'You have only 1.00 USD available. Check your account balance for details.',
      ),
      'refused INSUFFICIENT_FUNDS',
    ],
    [
      'minimum',
      bitstampError('400.002', 'Minimum order size is 10.0 USD.'),
      'refused ORDER_INVALID',
    ],
    ['duplicate: it is there', bitstampError('400.019', 'Duplicate client order id'), 'unknown'],
    [
      'key',
      { status: 403, body: { status: 'error', reason: 'API key not found', code: 'API0001' } },
      'refused KEY_REFUSED',
    ],
    [
      'nonce',
      { status: 403, body: { status: 'error', reason: 'Invalid nonce', code: 'API0004' } },
      'later RATE_LIMITED',
    ],
    ['internal', bitstampError('500.016', 'Order could not be placed.', 500), 'unknown'],
    ['internal under 200', bitstampError('500.013', 'Order could not be placed.', 200), 'unknown'],
    ['cut', 'cut', 'unknown'],
  ],
}

for (const [exchange, table] of Object.entries(PLACED)) {
  test(`${exchange}: each response to an order leads to the documented result`, async () => {
    for (const [what, answer, name] of table) {
      const { venue, script } = await stagedVenue(
        exchange,
        { [PLACE[exchange] as string]: answer },
        undefined,
        what === 'stalled body' ? 60 : undefined,
      )
      const placed = await venue.place(orderAt(exchange), NOW * 2)
      const said =
        placed.kind === 'accepted'
          ? `accepted ${placed.venueId}`
          : placed.kind === 'unknown'
            ? 'unknown'
            : `${placed.kind} ${placed.code}`
      assert.equal(said, name, `${what}: ${JSON.stringify(placed)}`)
      assert.doesNotMatch(
        JSON.stringify(placed),
        /https?:|nonce=|signature|maintenance|gateway/,
        what,
      )
      assert.equal(script.sent(PLACE[exchange] as string).length, 1, `${what}: sent once`)
    }
  })
}

test('sends an order with our client id and each exchange’s own parameters for its type', async () => {
  const expected: Record<
    string,
    Record<'GTC' | 'IOC' | 'FOK' | 'post', Record<string, unknown>>
  > = {
    kraken: {
      GTC: { cl_ord_id: ID, ordertype: 'limit', oflags: 'fciq', volume: '0.5', price: '37500' },
      IOC: { timeinforce: 'IOC' },
      FOK: { timeinforce: 'FOK' },
      post: { oflags: 'fciq,post' },
    },
    binance: {
      GTC: {
        newClientOrderId: ID,
        type: 'LIMIT',
        timeInForce: 'GTC',
        quantity: '0.5',
        price: '37500',
      },
      IOC: { timeInForce: 'IOC' },
      FOK: { timeInForce: 'FOK' },
      post: { type: 'LIMIT_MAKER' },
    },
    coinbase: {
      GTC: {
        client_order_id: ID,
        order_configuration: {
          limit_limit_gtc: { base_size: '0.5', limit_price: '37500', post_only: false },
        },
      },
      IOC: { order_configuration: { sor_limit_ioc: { base_size: '0.5', limit_price: '37500' } } },
      FOK: { order_configuration: { limit_limit_fok: { base_size: '0.5', limit_price: '37500' } } },
      post: {
        order_configuration: {
          limit_limit_gtc: { base_size: '0.5', limit_price: '37500', post_only: true },
        },
      },
    },
    okx: {
      GTC: { clOrdId: ID, ordType: 'limit', sz: '0.5', px: '37500', tdMode: 'cash' },
      IOC: { ordType: 'ioc' },
      FOK: { ordType: 'fok' },
      post: { ordType: 'post_only' },
    },
    bitstamp: {
      GTC: { client_order_id: ID, amount: '0.5', price: '37500' },
      IOC: { ioc_order: 'True' },
      FOK: { fok_order: 'True' },
      post: { moc_order: 'True' },
    },
  }
  for (const [exchange, forms] of Object.entries(expected)) {
    const { venue, script } = await stagedVenue(exchange, {})
    for (const form of ['GTC', 'IOC', 'FOK', 'post'] as const) {
      await venue.place(
        orderAt(exchange, form === 'post' ? { postOnly: true } : { timeInForce: form }),
        NOW * 2,
      )
      const sent = script.sent(PLACE[exchange] as string).at(-1) as Record<string, unknown>
      for (const [name, value] of Object.entries(forms[form]))
        assert.deepEqual(sent[name], value, `${exchange} ${form} ${name}: ${JSON.stringify(sent)}`)
    }
  }
})

const REF = (exchange: string, venueId: string | null = null) => ({
  clientId: ID,
  venueId,
  symbol: SYMBOLS[exchange] as string,
  sentAt: Date.now(),
})
const krakenOrder = (more: object) => ({
  status: 'closed',
  cl_ord_id: ID,
  opentm: NOW / 1000,
  vol: '0.5',
  vol_exec: '0.5',
  cost: '18750',
  fee: '30',
  price: '37500',
  oflags: 'fciq',
  reason: null,
  descr: {
    pair: 'XBTUSD',
    type: 'buy',
    ordertype: 'limit',
    price: '37500',
    price2: '0',
    order: 'buy 0.5 XBTUSD @ limit 37500',
  },
  trades: ['T1', 'T2'],
  ...more,
})
const krakenTrade = (vol: string) => ({
  ordertxid: 'O1',
  pair: 'XXBTZUSD',
  time: NOW / 1000,
  type: 'buy',
  ordertype: 'limit',
  price: '37500',
  cost: String(Number(vol) * 37500),
  fee: '15',
  vol,
  maker: false,
})

test('kraken: finds orders and fills by client id, never by userref, and detects absent ones', async () => {
  const ok = (result: object) => ({ body: { error: [], result } })
  const { venue, script } = await stagedVenue('kraken', {
    '/0/private/OpenOrders': [
      ok({ open: {} }),
      ok({ open: {} }),
      ok({ open: { O2: krakenOrder({ status: 'open', vol_exec: '0.2' }) } }),
    ],
    '/0/private/ClosedOrders': [
      ok({ closed: { O1: krakenOrder({}) }, count: 1 }),
      ok({ closed: {}, count: 0 }),
    ],
    '/0/private/QueryOrders': ok({ O1: krakenOrder({}) }),
    '/0/private/QueryTrades': ok({ T1: krakenTrade('0.2'), T2: krakenTrade('0.3') }),
    '/0/private/CancelOrder': [ok({ count: 1 }), krakenError('EOrder:Unknown order')],
  })
  assert.deepEqual(await venue.find(REF('kraken')), {
    kind: 'found',
    order: { venueId: 'O1', state: 'closed', filled: units('0.5'), fills: null },
  })
  assert.deepEqual(await venue.find(REF('kraken')), { kind: 'absent' })
  const open = await venue.find(REF('kraken'))
  assert.deepEqual(
    open.kind === 'found' && [open.order.venueId, open.order.state, open.order.filled],
    ['O2', 'open', units('0.2')],
  )
  for (const sent of [
    ...script.sent('/0/private/OpenOrders'),
    ...script.sent('/0/private/ClosedOrders'),
  ]) {
    assert.equal(sent['cl_ord_id'], ID)
    assert.equal(sent['userref'], undefined)
  }
  const byId = await venue.find(REF('kraken', 'O1'))
  assert.equal(byId.kind === 'found' && byId.order.state, 'closed')
  const fills = await venue.fills({ ...REF('kraken'), venueId: 'O1' })
  assert.deepEqual(
    fills.map(({ tradeId, amount, fee, feeCoin }) => [
      tradeId,
      showUnits(amount),
      showUnits(fee),
      feeCoin,
    ]),
    [
      ['T1', '0.2', '15', 'USD'],
      ['T2', '0.3', '15', 'USD'],
    ],
  )
  assert.deepEqual(
    [await venue.cancel(REF('kraken', 'O2')), await venue.cancel(REF('kraken', 'O2'))],
    ['asked', 'gone'],
  )
})

test('binance: finds orders by client id; −2013 means absent only if the order list agrees', async () => {
  const order = {
    symbol: 'BTCUSDT',
    orderId: 28,
    clientOrderId: ID,
    price: '37500',
    origQty: '0.5',
    executedQty: '0.5',
    cummulativeQuoteQty: '18750',
    status: 'FILLED',
    timeInForce: 'GTC',
    type: 'LIMIT',
    side: 'BUY',
    time: NOW,
    updateTime: NOW,
  }
  const missing = binanceError(-2013, 'Order does not exist.')
  const { venue, script } = await stagedVenue('binance', {
    'GET /api/v3/order': [{ body: order }, missing, missing, { status: 502, body: '' }],
    '/api/v3/allOrders': [{ body: [order] }, { body: [] }],
    '/api/v3/myTrades': {
      body: [
        {
          symbol: 'BTCUSDT',
          id: 7,
          orderId: 28,
          price: '37500',
          qty: '0.5',
          quoteQty: '18750',
          commission: '0.0005',
          commissionAsset: 'BTC',
          time: 1700000000000,
          isBuyer: true,
          isMaker: false,
        },
      ],
    },
    'DELETE /api/v3/order': binanceError(-2011, 'Unknown order sent.'),
  })
  const result = {
    kind: 'found',
    order: { venueId: '28', state: 'closed', filled: units('0.5'), fills: null },
  }
  assert.deepEqual(await venue.find(REF('binance')), result)
  assert.equal(script.sent('/api/v3/order')[0]?.['origClientOrderId'], ID)
  assert.deepEqual(await venue.find(REF('binance')), result, 'the list has it')
  assert.deepEqual(await venue.find(REF('binance')), { kind: 'absent' })
  await assert.rejects(venue.find(REF('binance')), { name: 'VenueError', kind: 'unavailable' })
  const [fill] = await venue.fills({ ...REF('binance'), venueId: '28' })
  assert.deepEqual(
    fill && [fill.tradeId, showUnits(fill.fee), fill.feeCoin, fill.maker, showUnits(fill.cost)],
    ['7', '0.0005', 'BTC', false, '18750'],
  )
  assert.equal(await venue.cancel(REF('binance', '28')), 'gone')
})

test('coinbase, okx, bitstamp: find orders and fills, and detect absent orders', async () => {
  const cb = {
    order_id: 'cb-1',
    product_id: 'BTC-USD',
    client_order_id: ID,
    side: 'BUY',
    filled_size: '0.5',
    average_filled_price: '37500',
    total_fees: '3',
    created_time: new Date(NOW).toISOString(),
    order_configuration: {
      limit_limit_gtc: { base_size: '0.5', limit_price: '37500', post_only: false },
    },
  }
  const coinbase = await stagedVenue('coinbase', {
    '/api/v3/brokerage/orders/historical/batch': [
      { body: { orders: [{ ...cb, client_order_id: 'other', status: 'FILLED' }], cursor: 'next' } },
      { body: { orders: [{ ...cb, status: 'PENDING', filled_size: '0' }], cursor: '' } },
      { body: { orders: [], cursor: '' } },
    ],
    '/api/v3/brokerage/orders/historical/fills': {
      body: {
        fills: [
          {
            trade_id: 't1',
            order_id: 'cb-1',
            product_id: 'BTC-USD',
            price: '37500',
            size: '0.5',
            size_in_quote: false,
            commission: '3',
            side: 'BUY',
            liquidity_indicator: 'MAKER',
            trade_time: '2026-01-01T00:00:01Z',
          },
        ],
        cursor: '',
      },
    },
  })
  const pending = await coinbase.venue.find(REF('coinbase'))
  assert.deepEqual(
    pending.kind === 'found' && [pending.order.state, pending.order.venueId],
    ['open', 'cb-1'],
    'on the second page',
  )
  assert.deepEqual(await coinbase.venue.find(REF('coinbase')), { kind: 'absent' })
  const [cbFill] = await coinbase.venue.fills({ ...REF('coinbase'), venueId: 'cb-1' })
  assert.deepEqual(
    cbFill && [
      cbFill.tradeId,
      showUnits(cbFill.amount),
      showUnits(cbFill.fee),
      cbFill.feeCoin,
      cbFill.maker,
    ],
    ['t1', '0.5', '3', 'USD', true],
  )

  const ox = {
    instId: 'BTC-USDT',
    instType: 'SPOT',
    ordId: '312',
    clOrdId: ID,
    state: 'canceled',
    sz: '0.5',
    accFillSz: '0.2',
    px: '37500',
    ordType: 'ioc',
    side: 'buy',
    cTime: '1',
    uTime: '1',
    fee: '-0.0002',
    feeCcy: 'BTC',
  }
  const okx = await stagedVenue('okx', {
    '/api/v5/trade/order': [
      { body: { code: '0', msg: '', data: [ox] } },
      { body: { code: '51603', msg: 'Order does not exist', data: [] } },
    ],
    '/api/v5/trade/fills-history': {
      body: {
        code: '0',
        msg: '',
        data: [
          {
            instId: 'BTC-USDT',
            instType: 'SPOT',
            tradeId: '9',
            ordId: '312',
            fillPx: '37500',
            fillSz: '0.2',
            fee: '-0.0002',
            feeCcy: 'BTC',
            side: 'buy',
            ts: '1700000000000',
            execType: 'T',
            billId: '1',
          },
        ],
      },
    },
  })
  const cancelled = await okx.venue.find(REF('okx'))
  assert.deepEqual(
    cancelled.kind === 'found' && [
      cancelled.order.state,
      showUnits(cancelled.order.filled as bigint),
    ],
    ['cancelled', '0.2'],
  )
  assert.deepEqual(await okx.venue.find(REF('okx')), { kind: 'absent' })
  const [okFill] = await okx.venue.fills({ ...REF('okx'), venueId: '312' })
  assert.deepEqual(okFill && [okFill.tradeId, showUnits(okFill.fee), okFill.feeCoin], [
    '9',
    '0.0002',
    'BTC',
  ])

  const bs = {
    id: 1234,
    client_order_id: ID,
    amount_remaining: '0.30000000',
    market: 'BTC/USD',
    transactions: [
      {
        tid: 5,
        price: '37500',
        btc: '0.20000000',
        usd: '7500',
        fee: '15',
        datetime: '2026-01-01 00:00:00.000000',
        type: 2,
      },
    ],
  }
  const bitstamp = await stagedVenue('bitstamp', {
    '/api/v2/order_status/': [
      { body: { ...bs, status: 'Expired' } },
      {
        status: 404,
        body: { status: 'error', reason: 'Order not found.', response_code: '404.002' },
      },
      { body: { ...bs, status: 'Open' } },
    ],
  })
  const expired = await bitstamp.venue.find(REF('bitstamp'))
  assert.deepEqual(
    expired.kind === 'found' && [
      expired.order.state,
      showUnits(expired.order.filled as bigint),
      expired.order.fills?.[0]?.tradeId,
    ],
    ['cancelled', '0.2', '5'],
  )
  assert.equal(bitstamp.script.sent('/api/v2/order_status/')[0]?.['client_order_id'], ID)
  assert.deepEqual(await bitstamp.venue.find(REF('bitstamp')), { kind: 'absent' })
  const [bsFill] = await bitstamp.venue.fills({ ...REF('bitstamp'), venueId: '1234' })
  assert.deepEqual(
    bsFill && [bsFill.tradeId, showUnits(bsFill.amount), showUnits(bsFill.fee), bsFill.feeCoin],
    ['5', '0.2', '15', 'USD'],
  )
})

test("returns a key's permissions as the exchange defines them", async () => {
  for (const [exchange, path, body, expected] of [
    [
      'kraken',
      '/0/private/GetApiKeyInfo',
      {
        error: [],
        result: {
          permissions: ['query-funds', 'modify-trades', 'withdraw-funds'],
          ipAllowlist: [],
        },
      },
      [true, true, false],
    ],
    [
      'binance',
      '/sapi/v1/account/apiRestrictions',
      { ipRestrict: true, enableWithdrawals: false, enableSpotAndMarginTrading: true },
      [true, false, true],
    ],
    [
      'coinbase',
      '/api/v3/brokerage/key_permissions',
      { can_view: true, can_trade: true, can_transfer: false },
      [true, false, null],
    ],
    [
      'okx',
      '/api/v5/account/config',
      { code: '0', data: [{ perm: 'read_only,withdraw', ip: '' }] },
      [false, true, false],
    ],
    ['bitstamp', '-', {}, [null, null, null]],
  ] as const) {
    const { venue } = await stagedVenue(exchange, { [path]: { body } })
    const { trade, withdraw, ip_restricted } = await venue.probe()
    assert.deepEqual([trade, withdraw, ip_restricted], expected, exchange)
  }
  const { venue } = await stagedVenue('kraken', {
    '/0/private/GetApiKeyInfo': krakenError('EAPI:Invalid key'),
  })
  await assert.rejects(venue.probe(), {
    name: 'VenueError',
    kind: 'refused',
    code: 'EAPI:Invalid key',
  })
})

test('kraken: earning, staked and bonded balances count, and only spendable ones are available', async () => {
  const of = (balance: string, hold = '0.0') => ({ balance, hold_trade: hold })
  const { venue } = await stagedVenue('kraken', {
    '/0/private/BalanceEx': {
      body: {
        error: [],
        result: {
          XXBT: of('1.5', '0.5'),
          'XBT.F': of('2.25'),
          'XBT.M': of('0.125'),
          'XBT.B': of('0.0625'),
          'ETH.F': of('3'),
          XETH: of('0.0'),
          'ETH2.S': of('4'),
          ETH2: of('1'),
          DOT: of('10'),
          'DOT28.S': of('7'),
          'DOT.S': of('1'),
          'DOT.P': of('2'),
          'ADA.S': of('0.0'),
          'SOL03.S': of('6'),
          ZUSD: of('100'),
          'USD.HOLD': of('50'),
          'USD.M': of('25'),
          'TSLAx.T': of('3'),
        },
      },
    },
  })
  const balances = (await venue.balances()).map(
    ({ coin, available, total }) => [coin, showUnits(available), showUnits(total)] as const,
  )
  assert.deepEqual(Object.fromEntries(balances.map(([coin, ...amounts]) => [coin, amounts])), {
    BTC: ['3.25', '3.9375'],
    ETH: ['3', '8'],
    DOT: ['10', '20'],
    SOL: ['0', '6'],
    USD: ['100', '175'],
    'TSLAX.T': ['3', '3'],
  })
  assert.equal(new Set(balances.map(([coin]) => coin)).size, balances.length)
})

test('binance: Flexible Earn balances count but are not available, and LDO is a coin', async () => {
  const of = (asset: string, free: string, locked = '0.00000000') => ({ asset, free, locked })
  const { venue } = await stagedVenue('binance', {
    '/api/v3/account': {
      body: {
        makerCommission: 10,
        takerCommission: 10,
        canTrade: true,
        canWithdraw: true,
        canDeposit: true,
        accountType: 'SPOT',
        balances: [
          of('BTC', '1.00000000', '0.50000000'),
          of('LDBTC', '2.00000000'),
          of('LDO', '7.00000000'),
          of('LDUSDT', '10.00000000'),
        ],
        permissions: ['SPOT'],
      },
    },
  })
  assert.deepEqual(
    (await venue.balances())
      .map(({ coin, available, total }) => [coin, showUnits(available), showUnits(total)])
      .sort(),
    [
      ['BTC', '1', '3.5'],
      ['LDO', '7', '7'],
      ['USDT', '0', '10'],
    ],
  )
})

test('balances are exact, and an HTML page in place of balances is an error', async () => {
  const { venue } = await stagedVenue('kraken', {
    '/0/private/BalanceEx': [
      {
        body: {
          error: [],
          result: {
            XXBT: { balance: '0.123456789012345678', hold_trade: '0.000000000000000001' },
            ZUSD: { balance: '25435.21', hold_trade: '8249.76' },
            USDC: { balance: '0.0', hold_trade: '0.0' },
          },
        },
      },
      { body: '<html></html>' },
      { body: '' },
      { body: { error: ['EAPI:Invalid key'] } },
      'cut',
    ],
  })
  assert.deepEqual(
    (await venue.balances()).map(({ coin, available, total }) => [
      coin,
      showUnits(available),
      showUnits(total),
    ]),
    [
      ['BTC', '0.123456789012345677', '0.123456789012345678'],
      ['USD', '17185.45', '25435.21'],
    ],
  )
  for (const kind of ['unavailable', 'unavailable', 'refused', 'unavailable'])
    await assert.rejects(venue.balances(), { name: 'VenueError', kind })
})

test('returns deposit addresses of the exact network, and refuses missing or ambiguous methods', async () => {
  const methods = (...names: string[]) => ({
    body: { error: [], result: names.map((method) => ({ method })) },
  })
  const { venue, script } = await stagedVenue('kraken', {
    '/0/private/DepositMethods': [
      methods('USDC', 'USDC - Solana', 'USDC (ERC20)'),
      methods('USDC (SPL)', 'USDC - Solana'),
      methods('USDC (ERC20)'),
    ],
    '/0/private/DepositAddresses': {
      body: { error: [], result: [{ address: 'So1', expiretm: '0', new: true }] },
    },
  })
  assert.deepEqual(await venue.depositAddress('USDC', 'SOL'), {
    address: 'So1',
    tag: null,
    network: 'SOL',
  })
  assert.equal(script.sent('/0/private/DepositAddresses')[0]?.['method'], 'USDC - Solana')
  for (const _ of [1, 2])
    await assert.rejects(venue.depositAddress('USDC', 'SOL'), {
      name: 'VenueError',
      kind: 'unsupported',
    })
  await assert.rejects(venue.depositAddress('BTC', 'KLAY'), { kind: 'unsupported' })
})

test('withdraws on the exact network with our id, and reports a certain or unknown result', async () => {
  const out = {
    clientId: ID,
    coin: 'BTC',
    network: 'BTC',
    address: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    tag: null,
    amount: units('0.25'),
    key: 'ours',
  }
  const binance = await stagedVenue('binance', {
    '/sapi/v1/capital/withdraw/apply': [
      { body: { id: 'w1' } },
      binanceError(-4026, 'User has insufficient balance.'),
      { status: 502, body: '' },
    ],
    '/sapi/v1/capital/withdraw/history': {
      body: [
        {
          id: 'w1',
          withdrawOrderId: ID,
          amount: '0.2499',
          transactionFee: '0.0001',
          coin: 'BTC',
          status: 6,
          address: out.address,
          txId: 'aa',
          applyTime: new Date(NOW).toISOString().slice(0, 19).replace('T', ' '),
          network: 'BTC',
        },
      ],
    },
    '/sapi/v1/capital/deposit/hisrec': {
      body: [
        {
          id: 'd1',
          amount: '1',
          coin: 'BTC',
          network: 'BTC',
          status: 0,
          address: 'bc1',
          addressTag: '',
          txId: 'bb',
          insertTime: NOW,
        },
      ],
    },
  })
  assert.deepEqual(await binance.venue.withdraw(out, NOW * 2), { kind: 'accepted', venueId: 'w1' })
  assert.equal(
    (await binance.venue.withdraw(out, NOW * 2)).kind,
    'unknown',
    'a code that no line names proves nothing',
  )
  assert.equal((await binance.venue.withdraw(out, NOW * 2)).kind, 'unknown')
  const [sent] = binance.script.sent('/sapi/v1/capital/withdraw/apply')
  assert.deepEqual(
    [sent?.['withdrawOrderId'], sent?.['network'], sent?.['amount'], sent?.['address']],
    [ID, 'BTC', '0.25', out.address],
  )
  const [gone] = await binance.venue.withdrawals('BTC', NOW - 60_000)
  assert.deepEqual(
    gone && [gone.venueId, gone.clientId, gone.status, gone.hash, showUnits(gone.amount)],
    ['w1', ID, 'done', 'aa', '0.2499'],
  )
  const [came] = await binance.venue.deposits('BTC', NOW - 1000)
  assert.deepEqual(came && [came.venueId, came.status, came.hash, showUnits(came.amount)], [
    'd1',
    'pending',
    'bb',
    '1',
  ])

  const kraken = await stagedVenue('kraken', {
    '/0/private/Withdraw': { body: { error: [], result: { refid: 'R1' } } },
  })
  assert.deepEqual(await kraken.venue.withdraw(out, NOW * 2), { kind: 'accepted', venueId: 'R1' })
  assert.deepEqual(
    [
      kraken.script.sent('/0/private/Withdraw')[0]?.['key'],
      kraken.script.sent('/0/private/Withdraw')[0]?.['amount'],
    ],
    ['ours', '0.25'],
  )
  assert.deepEqual(
    await kraken.venue.withdraw(out, 0),
    { kind: 'later', code: 'NOT_SENT' },
    'too late to leave',
  )
  assert.equal(kraken.script.sent('/0/private/Withdraw').length, 1)
})

test('a base URL replaces every host of an exchange, and other hosts receive no requests', async () => {
  for (const exchange of Object.keys(MANNERS)) {
    const script = new ScriptedExchange({})
    const client = await openClient<Client>({
      id: exchange,
      url: 'http://127.0.0.1:9/base',
      fetch: script.fetch as typeof fetch,
    })
    assert.doesNotMatch(JSON.stringify(client.urls['api']), /https:/, exchange)
    await (client.fetchImplementation as typeof fetch)('http://127.0.0.1:9/base/x')
    await assert.rejects(
      (client.fetchImplementation as typeof fetch)(
        'https://api.binance.com/sapi/v1/capital/withdraw/apply',
      ),
      /was not sent/,
    )
    assert.equal(script.requests.length, 1)
  }
  const own = await openClient<Client>({ id: 'binance', url: null, fetch: fetch })
  await assert.rejects(
    (own.fetchImplementation as typeof fetch)('https://evil.example/api/v3/order'),
    /was not sent/,
  )
  assert.equal(
    redacted(new Error(`GET https://api.example/x?signature=abc ${'k'.repeat(60)}`)),
    'Error: GET [url] […]',
  )
})

test('kraken: two clients send requests of one key one after another, with rising nonces', async () => {
  const nonces = memoryNonces()
  let busy = false
  const shared = {
    ...nonces,
    take: async () => (busy ? null : ((busy = true), nonces.take())),
    giveBack: async () => {
      busy = false
    },
  }
  let under = 0
  const script = new ScriptedExchange({
    ...(await import('../../../testing/venues/venue-scripts.ts')).MARKETS['kraken'],
  })
  const slow = async (input: string | URL | Request, init?: RequestInit) => {
    if (!String(input).includes('/private/')) return script.fetch(input, init)
    assert.equal(++under, 1, 'two at once')
    await new Promise((resolve) => setImmediate(resolve))
    await script.fetch(input, init)
    under--
    return new Response('{"error":[],"result":{"XXBT":{"balance":"1","hold_trade":"0"}}}')
  }
  const open = async () =>
    new Venues({
      urls: { kraken: 'https://local' },
      only: null,
      environment: systemEnvironment(),
      fetch: slow as typeof fetch,
      nonces: shared,
    }).account({
      id: 'one',
      exchange: 'kraken',
      key: '1',
      open: () => ({ apiKey: 'k', apiSecret: 'c2VjcmV0', passphrase: null }),
    })
  const [one, other] = await Promise.all([open(), open()])
  await Promise.all([one, other, one, other, one, other].map((venue) => venue.balances()))
  const sent = script.sent('/0/private/BalanceEx').map(({ nonce }) => Number(nonce))
  assert.equal(sent.length, 6)
  assert.deepEqual(
    sent,
    sent.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(sent).size, 6)
})

test('no module of the platform imports all of ccxt', () => {
  const src = new URL('../../', import.meta.url)
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(?<!\.test)\.ts$/.test(name),
  )
  assert.ok(files.includes('core/ccxt.ts'))
  const loading = files.filter((name) =>
    /(?:from|import\() ?'ccxt/.test(readFileSync(new URL(name, src), 'utf8')),
  )
  assert.deepEqual(loading, [])
})

test('reads an exchange’s decimals exactly, and rounds to price and amount steps correctly', () => {
  for (const [text, shown] of [
    ['1e-8', '0.00000001'],
    ['1E2', '100'],
    ['-0.5', '-0.5'],
    ['0.1234567890123456789', '0.123456789012345678'],
    ['5.', '5'],
  ] as const) {
    assert.equal(showUnits(units(text)), shown)
  }
  for (const wrong of ['', 'abc', '1,5', 'NaN', '0x1', undefined, null, '--1'])
    assert.equal(readUnits(wrong), null)
  const amount = fc.bigInt({ min: 0n, max: 10n ** 30n })
  const step = fc.bigInt({ min: 1n, max: 10n ** 18n })
  fc.assert(
    fc.property(amount, step, (of, by) => {
      const [low, high] = [floorTo(of, by), ceilTo(of, by)]
      assert.ok(
        low <= of &&
          of < low + by &&
          low % by === 0n &&
          high % by === 0n &&
          high >= of &&
          high - of < by,
      )
    }),
  )
  fc.assert(
    fc.property(amount, fc.bigInt({ min: 1n, max: 10n ** 26n }), (quote, price) =>
      assert.ok(times(divide(quote, price), price) <= quote),
    ),
  )
})
