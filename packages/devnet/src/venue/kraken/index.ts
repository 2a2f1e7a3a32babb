import type { HttpRequest } from '../../http-server.ts'
import type { FaceAnswer, Permission, Venue } from '../venue.ts'
import { answer, isTrue, KrakenError, type Arguments } from './answer.ts'
import { argumentsOf, KrakenGuard, permitted } from './auth.ts'
import type { Call } from './call.ts'
import {
  depositAddresses,
  depositMethods,
  depositStatus,
  withdraw,
  withdrawAddresses,
  withdrawCancel,
  withdrawInfo,
  withdrawMethods,
  withdrawStatus,
} from './funding.ts'
import { assetOf } from './names.ts'
import {
  addOrder,
  cancelOrder,
  closedOrders,
  openOrders,
  queryOrders,
  queryTrades,
  tradesHistory,
} from './orders.ts'
import { TradingRateLimit } from './trading-rate-limit.ts'
import { PUBLIC } from './public.ts'
import { amountText, shortText } from './api-objects.ts'

/** `cost`: added to the call counter. `isWrite`: its response may be lost in a fault mode. */
interface Method {
  permission: Permission | null
  cost: number
  isWrite?: boolean
  answer: (call: Call) => unknown
}

export const PRIVATE: Readonly<Record<string, Method>> = {
  Balance: { permission: 'query', cost: 1, answer: balance },
  BalanceEx: { permission: 'query', cost: 1, answer: balanceEx },
  AddOrder: { permission: 'trade', cost: 0, isWrite: true, answer: addOrder },
  CancelOrder: { permission: 'trade', cost: 0, isWrite: true, answer: cancelOrder },
  QueryOrders: { permission: 'query', cost: 1, answer: queryOrders },
  OpenOrders: { permission: 'query', cost: 1, answer: openOrders },
  ClosedOrders: { permission: 'query', cost: 1, answer: closedOrders },
  TradesHistory: { permission: 'query', cost: 2, answer: tradesHistory },
  QueryTrades: { permission: 'query', cost: 1, answer: queryTrades },
  DepositMethods: { permission: 'deposit', cost: 1, answer: depositMethods },
  DepositAddresses: { permission: 'deposit', cost: 1, answer: depositAddresses },
  DepositStatus: { permission: 'query', cost: 1, answer: depositStatus },
  WithdrawInfo: { permission: 'withdraw', cost: 1, answer: withdrawInfo },
  WithdrawMethods: { permission: 'withdraw', cost: 1, answer: withdrawMethods },
  WithdrawAddresses: { permission: 'withdraw', cost: 1, answer: withdrawAddresses },
  Withdraw: { permission: 'withdraw', cost: 1, isWrite: true, answer: withdraw },
  WithdrawStatus: { permission: 'query', cost: 1, answer: withdrawStatus },
  WithdrawCancel: { permission: 'withdraw', cost: 1, isWrite: true, answer: withdrawCancel },
  GetApiKeyInfo: { permission: null, cost: 1, answer: keyInfo },
}

function balance({ venue, key }: Call): unknown {
  const { balances } = venue.engine.accounts.get(key.account)!
  return Object.fromEntries(
    Object.entries(balances).map(([coin, { total }]) => [
      assetOf(coin).id,
      amountText(coin, total),
    ]),
  )
}

function balanceEx({ venue, key }: Call): unknown {
  const { balances } = venue.engine.accounts.get(key.account)!
  return Object.fromEntries(
    Object.entries(balances).map(([coin, { total, held }]) => [
      assetOf(coin).id,
      {
        balance: amountText(coin, total),
        hold_trade: held === 0n ? '0.0000' : shortText(coin, held),
      },
    ]),
  )
}

const NAMES: Record<Permission, string[]> = {
  query: ['query-funds', 'query-open-trades', 'query-closed-trades', 'query-ledger'],
  trade: ['modify-trades', 'close-trades'],
  deposit: ['add-funds'],
  withdraw: ['withdraw-funds'],
}

function keyInfo({ venue, key }: Call): unknown {
  const created = String(Math.floor(key.createdMs / 1000))
  return {
    apiKeyName: 'local',
    apiKey: key.key,
    nonce: key.nonce,
    nonceWindow: key.nonceWindow,
    permissions: key.permissions.flatMap((each) => NAMES[each]),
    iban: venue.accountIdOf(key),
    validUntil: '0',
    queryFrom: '0',
    queryTo: '0',
    createdTime: created,
    modifiedTime: created,
    ipAllowlist: [],
    lastUsed: String(Math.floor(Date.now() / 1000)),
  }
}

/** Spot REST API, version 0. */
export class KrakenFace {
  readonly #venue: Venue
  readonly #guard: KrakenGuard
  readonly #pace = new TradingRateLimit()

  constructor(venue: Venue) {
    this.#venue = venue
    this.#guard = new KrakenGuard(venue)
  }

  readonly rateLimited = answer(null, ['EAPI:Rate limit exceeded'])
  readonly unavailable = answer(null, ['EService:Unavailable'])
  readonly unknown = answer(null, ['EService:Timeout'])

  async handle(request: HttpRequest): Promise<FaceAnswer> {
    const [, kind, name = ''] = /^\/0\/(public|private)\/(\w+)$/.exec(request.path) ?? []
    const method = kind === 'private' && Object.hasOwn(PRIVATE, name) ? PRIVATE[name] : undefined
    const open = kind === 'public' && Object.hasOwn(PUBLIC, name) ? PUBLIC[name] : undefined
    try {
      if (open)
        return answer(
          open(this.#venue, {
            ...Object.fromEntries(new URLSearchParams(request.query)),
            ...bodyOf(request),
          }),
        )
      if (!method)
        return { status: 404, body: JSON.stringify({ error: ['EGeneral:Unknown method'] }) }
      if (request.method !== 'POST') throw new KrakenError('EGeneral:Invalid arguments')
      return await this.#private(method, request)
    } catch (error) {
      if (error instanceof KrakenError) return answer(null, [error.message])
      throw error
    }
  }

  async #private(method: Method, request: HttpRequest): Promise<FaceAnswer> {
    const venue = this.#venue
    const args = argumentsOf(request)
    const key = this.#guard.key(request, args)
    this.#guard.count(key, method.cost)
    if (method.permission) permitted(key, method.permission)
    await venue.funding.look()
    venue.engine.refresh()
    try {
      const result = await method.answer({ venue, key, args: args, pace: this.#pace })
      return { ...answer(result), isDeed: method.isWrite === true && !isTrue(args['validate']) }
    } finally {
      venue.commit()
    }
  }
}

const bodyOf = (request: HttpRequest): Arguments =>
  request.body === '' ? {} : argumentsOf(request)
