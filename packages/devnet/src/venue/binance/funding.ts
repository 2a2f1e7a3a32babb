import { randomBytes } from 'node:crypto'
import { power, readDecimal } from '../engine/numbers.ts'
import { Refused } from '../engine/types.ts'
import type { Deposit, Route, Withdrawal, WithdrawalStatus } from '../funding/types.ts'
import { amountText, BinanceError, limitOf, needed, whole } from './answer.ts'
import type { Call } from './call.ts'
import { BINANCE_RULES, DECIMALS, networkId } from './names.ts'

const LIST_MAX = 1000
const WITHDRAW_MAX_COINS = 9_000_000n

/** Returns the smallest step of an amount that the chain can pay. */
const stepOf = ({ chainDecimals }: Route): bigint => power(Math.max(0, DECIMALS - chainDecimals))

const routesOf = ({ venue }: Call, coin: string): Route[] =>
  venue.funding.routes.filter((route) => route.coin === coin)

/**
 * Returns the requested network, or the coin's usual one.
 * @throws BinanceError
 */
function routeIn(call: Call): Route {
  const routes = routesOf(call, needed(call.args, 'coin'))
  const { network } = call.args
  const route = network ? routes.find((each) => networkId(each.network) === network) : routes[0]
  if (!route) throw new BinanceError(-4019, 'Current asset is not open for withdrawal.')
  return route
}

export function coinList(call: Call): unknown {
  const { venue, key } = call
  const { balances } = venue.engine.accounts.get(key.account)!
  const leaving = [...venue.funding.withdrawals.values()].filter(
    ({ account, status }) =>
      account === key.account && (status === 'initial' || status === 'paying'),
  )
  return [...BINANCE_RULES.coins.keys()].map((coin) => {
    const { total = 0n, held = 0n } = balances[coin] ?? {}
    return {
      coin,
      depositAllEnable: true,
      withdrawAllEnable: true,
      name: coin,
      free: amountText(total - held),
      locked: amountText(held),
      freeze: '0',
      withdrawing: amountText(
        leaving.reduce(
          (sum, { coin: one, amount, fee }) => (one === coin ? sum + amount + fee : sum),
          0n,
        ),
      ),
      ipoing: '0',
      ipoable: '0',
      storage: '0',
      isLegalMoney: false,
      trading: true,
      networkList: routesOf(call, coin).map((route, at) => networkShape(route, at === 0)),
    }
  })
}

function networkShape(route: Route, isDefault: boolean): unknown {
  const { coin, network, fee, minimum, confirmations } = route
  return {
    network: networkId(network),
    coin,
    withdrawIntegerMultiple: amountText(stepOf(route)),
    isDefault,
    depositEnable: true,
    withdrawEnable: true,
    depositDesc: '',
    withdrawDesc: '',
    specialTips: '',
    name: networkId(network),
    resetAddressStatus: false,
    addressRegex: '',
    memoRegex: '',
    withdrawFee: amountText(fee),
    withdrawMin: amountText(minimum),
    withdrawMax: amountText(WITHDRAW_MAX_COINS * power(DECIMALS)),
    minConfirm: confirmations,
    unLockConfirm: confirmations,
    sameAddress: false,
    estimatedArrivalTime: 1,
    busy: false,
  }
}

/** Returns the account's address on a network, which is created on the first request. */
export async function depositAddress({ venue, key, ...more }: Call): Promise<unknown> {
  const { coin, network } = routeIn({ venue, key, ...more })
  const had = venue.funding.addresses.some(
    (each) => each.account === key.account && each.network === network,
  )
  const { address, tag } = await venue.funding.address(
    key.account,
    network,
    had && venue.faults.mode === 'changed-address',
  )
  return { address, coin, tag: tag ?? '', url: '' }
}

export function depositHistory({ venue, key, args }: Call): unknown {
  const status = whole(args, 'status')
  const all = venue.funding
    .depositsOf(key.account)
    .filter(
      (each) =>
        (!args['coin'] || each.coin === args['coin']) &&
        (!args['txId'] || each.hash === args['txId']) &&
        (status === null || status === Number(each.isCredited)),
    )
  return page(args, all, ({ atMs }) => atMs).map((each: Deposit) => {
    const wanted = venue.funding.routes.find(
      (route) => route.coin === each.coin && route.network === each.network,
    )!.confirmations
    return {
      id: each.id,
      amount: amountText(each.amount),
      coin: each.coin,
      network: networkId(each.network),
      status: Number(each.isCredited),
      address: each.address,
      addressTag: each.tag ?? '',
      txId: each.hash,
      insertTime: each.atMs,
      completeTime: each.atMs,
      transferType: 0,
      confirmTimes: `${Math.min(each.confirmations, wanted)}/${wanted}`,
      unlockConfirm: wanted,
      walletType: 0,
    }
  })
}

/** Withdraws. `amount` is deducted from the account; the receiver gets it less the fee. */
export function withdraw(call: Call): unknown {
  const { venue, key, args } = call
  const route = routeIn(call)
  const { coin, network, fee, minimum } = route
  const address = needed(args, 'address')
  const amount = readDecimal(needed(args, 'amount'), DECIMALS)
  if (amount === null || amount % stepOf(route) !== 0n) {
    throw new BinanceError(
      -4021,
      `Asset withdrawal must be an integer multiple of ${amountText(stepOf(route))}.`,
    )
  }
  if (amount <= fee)
    throw new BinanceError(-4028, 'The amount of withdrawal must be greater than the Commission.')
  if (amount < minimum)
    throw new BinanceError(
      -4022,
      `Not less than the minimum pick-up quantity ${amountText(minimum)}.`,
    )
  try {
    const { id } = venue.funding.withdraw({
      id: randomBytes(16).toString('hex'),
      account: key.account,
      coin,
      network,
      address,
      tag: args['addressTag'] || null,
      amount: amount - fee,
      fee,
      clientId: args['withdrawOrderId'] || null,
      addressName: null,
    })
    return { id }
  } catch (error) {
    if (error instanceof Refused) throw new BinanceError(-4026, 'You have insufficient balance.')
    throw error
  }
}

const STATUS: Record<WithdrawalStatus, number> = {
  initial: 2,
  paying: 4,
  pending: 4,
  success: 6,
  failed: 3,
  cancelled: 1,
}
const timeText = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')

export function withdrawHistory({ venue, key, args }: Call): unknown {
  const status = whole(args, 'status')
  const all = [...venue.funding.withdrawals.values()]
    .reverse()
    .filter(
      (each) =>
        each.account === key.account &&
        (!args['coin'] || each.coin === args['coin']) &&
        (!args['withdrawOrderId'] || each.clientId === args['withdrawOrderId']) &&
        (status === null || STATUS[each.status] === status),
    )
  return page(args, all, ({ atMs }) => atMs).map((each: Withdrawal) => ({
    id: each.id,
    amount: amountText(each.amount),
    transactionFee: amountText(each.fee),
    coin: each.coin,
    status: STATUS[each.status],
    address: each.address,
    addressTag: each.tag ?? '',
    txId: each.hash ?? '',
    applyTime: timeText(each.atMs),
    network: networkId(each.network),
    transferType: 0,
    ...(each.clientId === null ? {} : { withdrawOrderId: each.clientId }),
    info: each.reason ?? '',
    confirmNo: each.hash ? 1 : 0,
    walletType: 0,
    txKey: '',
    ...(each.status === 'success' ? { completeTime: timeText(each.changedMs) } : {}),
  }))
}

function page<Each>(args: Call['args'], all: Each[], atMs: (each: Each) => number): Each[] {
  const [start, end, offset] = [
    whole(args, 'startTime'),
    whole(args, 'endTime'),
    whole(args, 'offset') ?? 0,
  ]
  return all
    .filter(
      (each) => (start === null || atMs(each) >= start) && (end === null || atMs(each) <= end),
    )
    .slice(offset, offset + limitOf(args, LIST_MAX, LIST_MAX))
}
