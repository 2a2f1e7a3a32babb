import { RpcUnavailable } from './rpc.ts'
import { reasonOf } from './reason.ts'
import { ChainError } from './types.ts'

type Check = (value: unknown) => boolean
type Fields = Record<string, Check>

const isText: Check = (value) => typeof value === 'string'
const isName: Check = (value) => typeof value === 'string' && value !== ''
const isNatural: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isAmount: Check = (value) => typeof value === 'bigint' && value >= 0n
const isBoolean: Check = (value) => typeof value === 'boolean'
const isHex: Check = (value) =>
  typeof value === 'string' && value.length % 2 === 0 && /^[0-9a-f]*$/i.test(value)
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const has =
  (fields: Fields): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]))

/** Accepts a record in which all numbers are non-negative integers and no field is missing. */
const isWhole: Check = (value) => {
  if (typeof value === 'bigint') return value >= 0n
  if (typeof value === 'number') return isNatural(value)
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isWhole)
  return value !== undefined
}

/**
 * `sender` and `senders` are getters that encode addresses on first read, so they are not read
 * here.
 */
const isTrueOrAbsent: Check = (value) => value === undefined || value === true
const transfer = has({
  txid: isName,
  position: (value) => Number.isSafeInteger(value),
  asset: isName,
  address: isName,
  amount: isAmount,
  coinbase: isBoolean,
  withoutTransaction: isTrueOrAbsent,
  frame: isTrueOrAbsent,
})
const isDigits: Check = (value) => typeof value === 'string' && /^\d{1,19}$/.test(value)
const isAsideReason: Check = (value) => value === 'CASH_TOKENS' || value === 'TOKEN_ACCOUNT'
const aside = has({
  txid: isName,
  vout: isNatural,
  address: isName,
  amount: isAmount,
  reason: isAsideReason,
  asset: (value) => value === undefined || isName(value),
  account: (value) => value === undefined || isName(value),
  token: orNull(
    has({
      category: isHex,
      amount: isDigits,
      nft: orNull(has({ capability: isName, commitment: isHex })),
    }),
  ),
})
const included = has({
  state: (state) => state === 'included',
  height: isNatural,
  blockHash: isText,
  succeeded: isBoolean,
  fee: orNull(isAmount),
  staking: (value) => value === undefined || has({ withdrawn: isAmount, time: isNatural })(value),
})
const fee: Check = (value) =>
  isAmount(value) || has({ maxFeePerGas: isAmount, maxPriorityFeePerGas: isAmount })(value)
const levels = has({ low: fee, medium: fee, high: fee })

/**
 * Checks the results of a client's methods, for all fields that the code relies on. Texts for
 * people are not checked.
 */
const RESULTS: Record<string, (value: unknown, args: readonly unknown[]) => boolean> = {
  tip: has({
    height: isNatural,
    hash: isName,
    finalHeight: orNull((value) => Number.isSafeInteger(value)),
  }),
  head: has({ height: isNatural, timeMs: orNull(isNatural), lacks: orNull(isName) }),
  block: orNull(
    has({
      height: isNatural,
      hash: isName,
      parent: isText,
      txids: listOf(isName),
      transfers: listOf(transfer),
      aside: (value) => value === undefined || listOf(aside)(value),
    }),
  ),
  status: (value) =>
    has({ state: (state) => state === 'absent' || state === 'mempool' })(value) || included(value),
  broadcast: (value) =>
    has({ kind: (kind) => kind === 'accepted' })(value) ||
    has({ kind: (kind) => kind === 'rejected' || kind === 'unknown', reason: isText })(value),
  waiting: listOf(isName),
  waitingTransfers: listOf(transfer),
  rawTransaction: isHex,
  transactionBody: isHex,
  senders: has({ addresses: listOf(isName), complete: isBoolean }),
  unspent: orNull(isAmount),
  balance: isAmount,
  balances: (value, [addresses]) =>
    listOf(isAmount)(value) &&
    (value as unknown[]).length === (addresses as readonly unknown[]).length,
  holdings: has({
    balance: isAmount,
    elsewhere: listOf(has({ place: isName, amount: isAmount, reason: isAsideReason })),
  }),
  activation: isAmount,
  rent: isAmount,
  nonce: isAmount,
  gasLimit: isAmount,
  gasUsed: isAmount,
  l1Fee: isAmount,
  energy: isAmount,
  delegatable: isAmount,
  withdrawable: isAmount,
  delegated: has({ ENERGY: isAmount, BANDWIDTH: isAmount }),
  feeRates: levels,
  unitPrices: levels,
  validUntil: isNatural,
  headTime: isNatural,
  unfreezesLeft: isNatural,
  isDead: isBoolean,
  isActivated: isBoolean,
  isContract: isBoolean,
  lifetime: has({ blockhash: isName, validUntil: isNatural }),
  reference: has({ expiration: isNatural, timestamp: isNatural }),
  account: orNull((value) => has({ balance: isAmount })(value) && isWhole(value)),
  resources: isWhole,
  parameters: isWhole,
  findSigned: orNull(has({ hash: isName, raw: isHex })),
}

/**
 * Wraps a client so that its methods either return the declared type or throw a {@link ChainError}.
 * A malformed response of an endpoint results in `RPC_UNAVAILABLE`, wherever parsing it failed.
 * Call it at the end of a client's constructor.
 */
export function checkedClient<Client extends object>(client: Client, network: string): Client {
  const wrapped = new Map<PropertyKey, { original: unknown; checked: unknown }>()
  const odd = (method: string, problem: string): RpcUnavailable =>
    new RpcUnavailable(`${network}: ${method}: ${problem}`)
  const wrap =
    (method: string, original: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown => {
      const failed = (error: unknown): never => {
        if (error instanceof ChainError) throw error
        throw Object.assign(odd(method, `the response cannot be read (${reasonOf(error)})`), {
          cause: error,
        })
      }
      const passed = (value: unknown): unknown => {
        if (RESULTS[method]?.(value, args) === false)
          throw odd(method, 'the response does not have the format of its protocol')
        return value
      }
      try {
        const result = Reflect.apply(original, client, args)
        return result instanceof Promise ? result.then(passed, failed) : result
      } catch (error) {
        return failed(error)
      }
    }
  return new Proxy(client, {
    get(_client, name) {
      const value = Reflect.get(client, name, client) as unknown
      if (typeof value !== 'function' || typeof name !== 'string' || name === 'constructor')
        return value
      const cached = wrapped.get(name)
      if (cached?.original === value) return cached.checked
      const checked = wrap(name, value as (...args: unknown[]) => unknown)
      wrapped.set(name, { original: value, checked })
      return checked
    },
  })
}
