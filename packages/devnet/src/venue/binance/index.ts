import type { HttpAnswer, HttpRequest } from '../../http-server.ts'
import type { FaceAnswer, Permission, Venue } from '../venue.ts'
import { amountText, BinanceError, type Arguments } from './answer.ts'
import { BinanceGuard } from './auth.ts'
import type { Call } from './call.ts'
import { coinList, depositAddress, depositHistory, withdraw, withdrawHistory } from './funding.ts'
import { allOrders, cancelOrder, myTrades, newOrder, openOrders, queryOrder } from './orders.ts'
import { bookTicker, dayTicker, depthShape, exchangeInfo, marketsIn, timeShape } from './public.ts'

interface Open {
  weight: number
  open: (venue: Venue, args: Arguments) => unknown
}
/** `isWrite`: its response may be lost in a fault mode. */
interface Signed {
  weight: number
  permission: Permission
  isWrite?: boolean
  answer: (call: Call) => unknown
}

export const METHODS: Readonly<Record<string, Open | Signed>> = {
  'GET /api/v3/ping': { weight: 1, open: () => ({}) },
  'GET /api/v3/time': { weight: 1, open: timeShape },
  'GET /api/v3/exchangeInfo': { weight: 20, open: exchangeInfo },
  'GET /api/v3/depth': { weight: 5, open: depthShape },
  'GET /api/v3/ticker/24hr': { weight: 2, open: dayTicker },
  'GET /api/v3/ticker/bookTicker': { weight: 2, open: bookTicker },
  'GET /api/v3/account': { weight: 20, permission: 'query', answer: account },
  'POST /api/v3/order': {
    weight: 1,
    permission: 'trade',
    isWrite: true,
    answer: (call) => newOrder(call),
  },
  'POST /api/v3/order/test': {
    weight: 1,
    permission: 'trade',
    answer: (call) => newOrder(call, true),
  },
  'GET /api/v3/order': { weight: 4, permission: 'query', answer: queryOrder },
  'DELETE /api/v3/order': { weight: 1, permission: 'trade', isWrite: true, answer: cancelOrder },
  'GET /api/v3/openOrders': { weight: 6, permission: 'query', answer: openOrders },
  'GET /api/v3/allOrders': { weight: 20, permission: 'query', answer: allOrders },
  'GET /api/v3/myTrades': { weight: 20, permission: 'query', answer: myTrades },
  'GET /sapi/v1/system/status': { weight: 1, open: () => ({ status: 0, msg: 'normal' }) },
  'GET /sapi/v1/capital/config/getall': { weight: 10, permission: 'query', answer: coinList },
  'GET /sapi/v1/capital/deposit/address': {
    weight: 10,
    permission: 'query',
    answer: depositAddress,
  },
  'GET /sapi/v1/capital/deposit/hisrec': { weight: 1, permission: 'query', answer: depositHistory },
  'POST /sapi/v1/capital/withdraw/apply': {
    weight: 600,
    permission: 'withdraw',
    isWrite: true,
    answer: withdraw,
  },
  'GET /sapi/v1/capital/withdraw/history': {
    weight: 20,
    permission: 'query',
    answer: withdrawHistory,
  },
  'GET /sapi/v1/account/apiRestrictions': { weight: 1, permission: 'query', answer: restrictions },
  'GET /sapi/v1/localentity/questionnaire-requirements': {
    weight: 1,
    permission: 'query',
    // Accounts of the emulator belong to no local entity.
    answer: () => ({ questionnaireCountryCode: 'NIL' }),
  },
  'GET /sapi/v1/asset/tradeFee': { weight: 1, permission: 'query', answer: tradeFees },
}

const rate = (bps: bigint): string => (Number(bps) / 10_000).toString()

function account({ venue, key }: Call): unknown {
  const { balances } = venue.engine.accounts.get(key.account)!
  const { makerBps, takerBps } = venue.kind.rules
  return {
    makerCommission: Number(makerBps),
    takerCommission: Number(takerBps),
    buyerCommission: 0,
    sellerCommission: 0,
    commissionRates: { maker: rate(makerBps), taker: rate(takerBps), buyer: '0', seller: '0' },
    canTrade: true,
    canWithdraw: true,
    canDeposit: true,
    brokered: false,
    requireSelfTradePrevention: false,
    preventSor: false,
    updateTime: venue.now(),
    accountType: 'SPOT',
    balances: Object.entries(balances).map(([asset, { total, held }]) => ({
      asset,
      free: amountText(total - held),
      locked: amountText(held),
    })),
    permissions: ['SPOT'],
    uid: Number(venue.accountIdOf(key)),
  }
}

/** As at Binance itself, only a key with IP restrictions may withdraw. */
function restrictions({ key }: Call): unknown {
  const may = (permission: Permission) => key.permissions.includes(permission)
  return {
    ipRestrict: may('withdraw'),
    createTime: key.createdMs,
    enableReading: may('query'),
    enableWithdrawals: may('withdraw'),
    enableInternalTransfer: false,
    enableMargin: false,
    enableFutures: false,
    permitsUniversalTransfer: false,
    enableVanillaOptions: false,
    enableFixApiTrade: false,
    enableFixReadOnly: false,
    enableSpotAndMarginTrading: may('trade'),
    enablePortfolioMarginTrading: false,
  }
}

function tradeFees({ venue, args: values }: Call): unknown {
  const { makerBps, takerBps } = venue.kind.rules
  return marketsIn(values['symbol'] ? { symbol: values['symbol'] } : {}).map(({ id }) => ({
    symbol: id,
    makerCommission: rate(makerBps),
    takerCommission: rate(takerBps),
  }))
}

/** Spot REST API: the requests of `api/v3` and `sapi/v1` that an account needs. */
export class BinanceFace {
  readonly #venue: Venue
  readonly #guard: BinanceGuard

  constructor(venue: Venue) {
    this.#venue = venue
    this.#guard = new BinanceGuard(venue)
  }

  readonly rateLimited = refused(
    new BinanceError(-1003, 'Too many requests.', 429, { 'retry-after': '1' }),
  )
  readonly unavailable = refused(
    new BinanceError(
      -1001,
      'Internal error; unable to process your request. Please try again.',
      503,
    ),
  )
  readonly unknown = refused(
    new BinanceError(
      -1007,
      'Timeout waiting for response from backend server. Send status unknown; execution status unknown.',
      504,
    ),
  )

  async handle(request: HttpRequest): Promise<FaceAnswer> {
    const name = `${request.method} ${request.path}`
    const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined
    if (!method) return { status: 404, body: '<html><body><h2>404 Not found</h2></body></html>' }
    try {
      const values = Object.fromEntries([
        ...new URLSearchParams(request.query),
        ...new URLSearchParams(request.body),
      ])
      const caller = request.headers['x-mbx-apikey']
      this.#guard.count(typeof caller === 'string' ? caller : undefined, method.weight)
      if ('open' in method) return answer(method.open(this.#venue, values))
      return await this.#signed(method, request, values)
    } catch (error) {
      if (error instanceof BinanceError) return refused(error)
      throw error
    }
  }

  async #signed(method: Signed, request: HttpRequest, values: Arguments): Promise<FaceAnswer> {
    const venue = this.#venue
    const key = this.#guard.key(request, values, method.permission)
    await venue.funding.look()
    venue.engine.refresh()
    try {
      const result = await method.answer({ venue, key, args: values, guard: this.#guard })
      return { ...answer(result), isDeed: method.isWrite === true }
    } finally {
      venue.commit()
    }
  }
}

const answer = (result: unknown): HttpAnswer => ({ status: 200, body: JSON.stringify(result) })
const refused = ({ code, message, status, headers }: BinanceError): HttpAnswer => ({
  status,
  headers,
  body: JSON.stringify({ code, msg: message }),
})
