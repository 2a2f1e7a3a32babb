import { randomBytes } from 'node:crypto'
import { readDecimal, power } from '../engine/numbers.ts'
import { Refused } from '../engine/types.ts'
import type {
  Deposit,
  DepositAddress,
  KnownAddress,
  Route,
  Withdrawal,
  WithdrawalStatus,
} from '../funding/types.ts'
import { isTrue, KrakenError, invalid, needed, seconds, type Arguments } from './answer.ts'
import type { Call } from './call.ts'
import { methodOf, networkName } from './methods.ts'
import { assetNamed, assetOf, krakenId, type Asset } from './names.ts'
import { amountText } from './api-objects.ts'

/** Maximum number of an account's unused addresses of one method. */
const UNUSED_ADDRESSES_MAX = 5
const DAILY_LIMIT_COINS = 1_000_000n

function assetIn(args: Arguments): Asset {
  const asset = assetNamed(needed(args, 'asset'))
  if (!asset) throw new KrakenError('EFunding:Unknown asset')
  return asset
}

const routesOf = ({ venue }: Call, coin: string): Route[] =>
  venue.funding.routes.filter((route) => route.coin === coin)

function routeIn(call: Call, coin: string): Route {
  const method = needed(call.args, 'method')
  const route = routesOf(call, coin).find((each) => methodOf(each) === method)
  if (!route) throw new KrakenError('EFunding:No funding method')
  return route
}

export function depositMethods(call: Call): unknown {
  const { coin } = assetIn(call.args)
  return routesOf(call, coin).map((route) => ({
    method: methodOf(route),
    limit: false,
    fee: amountText(coin, 0n),
    'gen-address': true,
    minimum: amountText(coin, 0n),
  }))
}

/** Returns the existing addresses, newest first. A new one is created only if `new` is set. */
export async function depositAddresses(call: Call): Promise<unknown> {
  const { venue, key, args } = call
  const { coin } = assetIn(args)
  const { network } = routeIn(call, coin)
  const all = () =>
    venue.funding.addresses
      .filter((each) => each.account === key.account && each.network === network)
      .reverse()
  const isUsed = ({ address, tag }: DepositAddress) =>
    venue.funding
      .depositsOf(key.account)
      .some((each) => each.address === address && each.tag === tag)
  const isChanged = venue.faults.mode === 'changed-address' && all().length > 0
  if (isTrue(args['new']) || isChanged) {
    const unused = all().filter((each) => !isUsed(each))
    if (!isChanged && unused.length >= UNUSED_ADDRESSES_MAX)
      throw new KrakenError('EFunding:Too many addresses')
    await venue.funding.address(key.account, network, true)
  }
  return all()
    .slice(0, isChanged ? 1 : undefined)
    .map((each) => ({
      address: each.address,
      expiretm: '0',
      new: !isUsed(each),
      ...(each.tag === null ? {} : { tag: each.tag }),
    }))
}

const nearest = ({ venue }: Call, { coin, network }: { coin: string; network: string }): Route =>
  venue.funding.routes.find((route) => route.coin === coin && route.network === network)!

/**
 * Returns the history of transfers.
 * @throws KrakenError for an unknown asset or method
 */
function history<Each extends { coin: string; network: string; atMs: number }>(
  call: Call,
  all: Each[],
): Each[] {
  const { asset, method, start, end } = call.args
  const coin = asset === undefined ? null : assetIn(call.args).coin
  return all.filter(
    (each) =>
      (coin === null || each.coin === coin) &&
      (method === undefined || methodOf(nearest(call, each)) === method) &&
      (start === undefined || seconds(each.atMs) > Number(start)) &&
      (end === undefined || seconds(each.atMs) <= Number(end)),
  )
}

export async function depositStatus(call: Call): Promise<unknown> {
  return history(call, call.venue.funding.depositsOf(call.key.account)).map((deposit: Deposit) => ({
    method: methodOf(nearest(call, deposit)),
    network: networkName(deposit.network),
    aclass: 'currency',
    asset: assetOf(deposit.coin).id,
    refid: krakenId('F', deposit.id),
    txid: deposit.hash,
    info: deposit.tag === null ? deposit.address : `${deposit.address}:${deposit.tag}`,
    amount: amountText(deposit.coin, deposit.amount),
    fee: amountText(deposit.coin, 0n),
    time: Math.floor(seconds(deposit.atMs)),
    status: deposit.isCredited ? 'Success' : 'Settled',
  }))
}

export function withdrawMethods(call: Call): unknown {
  const coin = call.args['asset'] === undefined ? null : assetIn(call.args).coin
  return call.venue.funding.routes
    .filter((route) => coin === null || route.coin === coin)
    .map((route) => ({
      asset: assetOf(route.coin).id,
      method: methodOf(route),
      network: networkName(route.network),
      minimum: amountText(route.coin, route.minimum),
    }))
}

export function withdrawAddresses(call: Call): unknown {
  const { venue, key, args } = call
  const coin = args['asset'] === undefined ? null : assetIn(args).coin
  const wanted = (whitelisted: KnownAddress) =>
    whitelisted.account === key.account &&
    (coin === null || whitelisted.coin === coin) &&
    (args['key'] === undefined || whitelisted.name === args['key']) &&
    (args['method'] === undefined || methodOf(nearest(call, whitelisted)) === args['method'])
  return venue.funding.knownAddresses.filter(wanted).map((whitelisted) => ({
    address: whitelisted.address,
    asset: assetOf(whitelisted.coin).id,
    method: methodOf(nearest(call, whitelisted)),
    key: whitelisted.name,
    ...(whitelisted.tag === null ? {} : { tag: whitelisted.tag }),
    verified: true,
  }))
}

/** Returns the data of a withdrawal to a registered name. The fee is deducted from its amount. */
function withdrawalIn(call: Call): { whitelisted: KnownAddress; route: Route; amount: bigint } {
  const { venue, key, args } = call
  const { coin, decimals } = assetIn(args)
  const address = venue.funding.knownAddresses.find(
    (each) =>
      each.account === key.account && each.coin === coin && each.name === needed(args, 'key'),
  )
  if (!address) throw new KrakenError('EFunding:Unknown withdraw key')
  const route = nearest(call, address)
  const amount = readDecimal(needed(args, 'amount'), Math.min(decimals, route.chainDecimals))
  if (amount === null) throw invalid('amount')
  return {
    whitelisted: address,
    route,
    amount: amount * power(decimals - Math.min(decimals, route.chainDecimals)),
  }
}

export function withdrawInfo(call: Call): unknown {
  const { route, amount } = withdrawalIn(call)
  const { coin, fee } = route
  return {
    method: methodOf(route),
    limit: amountText(coin, DAILY_LIMIT_COINS * power(assetOf(coin).decimals)),
    amount: amountText(coin, amount > fee ? amount - fee : 0n),
    fee: amountText(coin, fee),
  }
}

export function withdraw(call: Call): unknown {
  const {
    whitelisted,
    route: { coin, network, fee, minimum },
    amount,
  } = withdrawalIn(call)
  const { address, max_fee: maxFee } = call.args
  if (address !== undefined && address !== whitelisted.address)
    throw new KrakenError('EFunding:Invalid withdrawal address')
  const limit = maxFee === undefined ? null : readDecimal(maxFee, assetOf(coin).decimals)
  if (maxFee !== undefined && limit === null) throw invalid('max_fee')
  if (limit !== null && fee > limit) throw new KrakenError('EFunding:Max fee exceeded')
  if (amount < minimum) throw new KrakenError('EFunding:Invalid amount')
  try {
    const withdrawal = call.venue.funding.withdraw({
      id: krakenId('F', randomBytes(16).toString('hex')),
      account: call.key.account,
      coin,
      network,
      address: whitelisted.address,
      tag: whitelisted.tag,
      amount: amount - fee,
      fee,
      clientId: null,
      addressName: whitelisted.name,
    })
    return { refid: withdrawal.id }
  } catch (error) {
    if (error instanceof Refused) throw new KrakenError('EFunding:Insufficient funds')
    throw error
  }
}

const STATUS: Record<WithdrawalStatus, string> = {
  initial: 'Initial',
  paying: 'Pending',
  pending: 'Settled',
  success: 'Success',
  failed: 'Failure',
  cancelled: 'Failure',
}

export function withdrawStatus(call: Call): unknown {
  const all = [...call.venue.funding.withdrawals.values()]
    .filter(({ account }) => account === call.key.account)
    .reverse()
  return history(call, all).map((each: Withdrawal) => ({
    method: methodOf(nearest(call, each)),
    network: networkName(each.network),
    aclass: 'currency',
    asset: assetOf(each.coin).id,
    refid: each.id,
    txid: each.hash,
    info: each.tag === null ? each.address : `${each.address}:${each.tag}`,
    amount: amountText(each.coin, each.amount),
    fee: amountText(each.coin, each.fee),
    time: Math.floor(seconds(each.atMs)),
    status: STATUS[each.status],
    ...(each.status === 'cancelled' ? { 'status-prop': 'canceled' } : {}),
    key: each.addressName,
  }))
}

export function withdrawCancel(call: Call): unknown {
  assetIn(call.args)
  const withdrawal = call.venue.funding.withdrawals.get(needed(call.args, 'refid'))
  if (!withdrawal || withdrawal.account !== call.key.account)
    throw new KrakenError('EFunding:Unknown reference id')
  return call.venue.funding.cancel(withdrawal)
}
