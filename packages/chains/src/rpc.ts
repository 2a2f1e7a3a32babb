import { ChainError, type Asset, type Checkpoint, type UtxoTokens } from './types.ts'

/** Minimum fee rates by level, as decimal text in the network's `fee_rate_unit`. */
export type FeeFloors = Partial<Record<keyof LevelRates, string>>

/**
 * Address and credentials of an RPC endpoint. `fee_floors` (Bitcoin and its derivatives): minimum
 * rate of each level, also used if the node has no estimate; replaces the registry's. `checkpoint`
 * (the same networks): a block that the node must have, in addition to the registry's.
 * `requests_per_day`: quota of the endpoint's plan.
 */
export interface RpcEndpoint {
  url: string
  username?: string
  password?: string
  headers?: Record<string, string>
  fee_floors?: FeeFloors
  /** EVM: minimum tip as decimal text in Gwei; replaces the registry's. */
  min_tip?: string
  checkpoint?: Checkpoint
  requests_per_day?: number
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The endpoint was unreachable or too slow, or its response did not follow its protocol. */
export class RpcUnavailable extends ChainError {
  constructor(message: string) {
    super('RPC_UNAVAILABLE', message)
    this.name = 'RpcUnavailable'
  }
}

/**
 * The response was incomplete at its deadline, or exceeds the size limit. Smaller requests may
 * succeed.
 */
export class RpcTooLarge extends RpcUnavailable {}

/**
 * The endpoint responded, but with data that does not match the requested transaction. Other
 * transactions are unaffected.
 */
export class RpcMismatch extends RpcUnavailable {
  constructor(message: string) {
    super(message)
    this.name = 'RpcMismatch'
  }
}

/**
 * The node has no estimate of the fee rate that gets a transaction into a block, and no other
 * source has one.
 */
export class NoFeeEstimate extends RpcUnavailable {
  constructor(network: string, level: keyof LevelRates) {
    super(
      `${network}: the node has no estimate of fee rates now, none was read within two hours, and no floor is configured for the level ${level}; set fee_rate, or set fee_floors of ${network} in custody.config.json`,
    )
    this.name = 'NoFeeEstimate'
  }
}

/** The endpoint responded with an error of its own protocol. */
export class RpcRefused extends ChainError {
  readonly rpcCode: number
  constructor(rpcCode: number, message: string) {
    super('RPC_REFUSED', message)
    this.name = 'RpcRefused'
    this.rpcCode = rpcCode
  }
}

/**
 * The endpoint executed a transaction and reports that it failed, so the chain would reject it.
 * Only this error may end a transfer; any other error concerns only the endpoint.
 */
export class RpcReverted extends RpcRefused {
  constructor(rpcCode: number, message: string) {
    super(rpcCode, message)
    this.name = 'RpcReverted'
  }
}

const RPC_TIMEOUT_MS = 8000
/**
 * Timeout in milliseconds for responses that contain a whole block, its receipts, or a page of
 * transactions: up to some hundred megabytes, which a hosted node reads from its disk and sends
 * over a shared connection.
 */
const BLOCK_TIMEOUT_MS = 60_000
/** Methods and paths (Tron, Cardano) that use this timeout. */
const BLOCK_ANSWERS = new RegExp(
  '^(?:getblock|getBlock|eth_getBlockByNumber|eth_getBlockReceipts|eth_getLogs|ledger|getTransactions|getLedgers|getrawmempool' +
    '|wallet/getblockbynum|wallet/gettransactioninfobyblocknum|/blocks/\\w+/txs/cbor)$',
)

/** Returns whether the parameters request only a block's header (EVM, Solana, XRP). */
function asksForHead(method: string, params: unknown[] | Record<string, unknown>): boolean {
  if (!Array.isArray(params)) return false
  const [first, second] = params as (
    | { transactions?: unknown; transactionDetails?: unknown }
    | boolean
    | null
    | undefined
  )[]
  if (method === 'ledger')
    return (first as { transactions?: unknown } | undefined)?.transactions !== true
  return second === false || (typeof second === 'object' && second?.transactionDetails === 'none')
}
/**
 * Returns whether an HTTP status means that the endpoint, or a proxy before it, did not process the
 * request: credentials, quotas, overload. Nodes report their own errors with 200, 400, 404 and 500.
 */
const isNotLookedAt = (status: number): boolean =>
  [401, 402, 403, 407, 408, 425, 429].includes(status) || status > 500
/**
 * Error codes in the body with the same meaning: limit exceeded (EIP-1474), node is unhealthy
 * (Solana), HTTP's own number.
 */
const NOT_LOOKED_AT = new Set([-32005, 429])
const ANSWER_BYTES_MAX = 256 * 1024 * 1024

/**
 * Sends a JSON-RPC request. Numbers that need exactness are read by `reviver` from their source
 * text.
 */
export type JsonRpc = <T>(method: string, params: unknown[] | Record<string, unknown>) => Promise<T>

/** An HTTP request. `what` is its name in errors. */
export interface Exchange {
  url: string
  what: string
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string | Buffer
  /** The response is only a block's header, whatever `what` returns otherwise. */
  isHead?: boolean
}

/**
 * Sends one HTTP request to an endpoint, with the credentials of its settings. The URL may contain
 * a provider's key, so errors contain the host only.
 * @throws RpcUnavailable
 */
export async function exchange(
  endpoint: RpcEndpoint,
  fetch: Fetch,
  { url, what, method, headers, body, isHead }: Exchange,
): Promise<{ status: number; text: string }> {
  const where = `${new URL(url).host}: ${what}`
  const { username, password = '' } = endpoint
  const basic = Buffer.from(`${username}:${password}`).toString('base64')
  const authorization = username === undefined ? {} : { authorization: `Basic ${basic}` }
  let text: string | null
  let status: number
  // Not AbortSignal.timeout, which creates a timer and an error for every request, including the
  // successful ones.
  const late = new AbortController()
  const timeoutMs = BLOCK_ANSWERS.test(what) && isHead !== true ? BLOCK_TIMEOUT_MS : RPC_TIMEOUT_MS
  const timer = setTimeout(
    () => late.abort(new DOMException('too late', 'TimeoutError')),
    timeoutMs,
  )
  try {
    const response = await fetch(url, {
      method,
      headers: { ...headers, ...endpoint.headers, ...authorization },
      signal: late.signal,
      redirect: 'error',
      ...(body === undefined ? {} : { body }),
    })
    status = response.status
    text = await readText(response)
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    if (isLate) throw new RpcTooLarge(`${where}: no response within ${timeoutMs} ms`)
    throw new RpcUnavailable(`${where}: cannot be reached`)
  } finally {
    clearTimeout(timer)
  }
  if (text === null) throw new RpcTooLarge(`${where}: the response is too large`)
  return { status, text }
}

/** JSON.parse with a reviver that receives the source text of numbers. */
export const parseWithSource = JSON.parse as (
  text: string,
  reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
) => unknown

/**
 * Creates a JSON-RPC caller over HTTP POST.
 * @param reviver like JSON.parse's, with the source text of numbers
 * @throws RpcUnavailable, RpcRefused (from the returned function)
 */
export function jsonRpc(
  endpoint: RpcEndpoint,
  fetch: Fetch,
  reviver?: (key: string, value: unknown, source: string | undefined) => unknown,
): JsonRpc {
  let id = 0
  return async <T>(method: string, params: unknown[] | Record<string, unknown>): Promise<T> => {
    const where = new URL(endpoint.url).host
    const { status, text } = await exchange(endpoint, fetch, {
      url: endpoint.url,
      what: method,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }),
      isHead: asksForHead(method, params),
    })
    let answer: { result?: unknown; error?: { code?: unknown; message?: unknown } | null }
    try {
      const parsed = reviver
        ? parseWithSource(text, (key, value, { source }) => reviver(key, value, source))
        : (JSON.parse(text) as unknown)
      answer = parsed as typeof answer
    } catch {
      throw new RpcUnavailable(`${where}: ${method}: the response is not JSON`)
    }
    if (typeof answer !== 'object' || answer === null)
      throw new RpcUnavailable(`${where}: ${method}: the response is not JSON-RPC`)
    if (isNotLookedAt(status))
      throw new RpcUnavailable(`${where}: ${method}: HTTP status ${status}`)
    if (answer.error) {
      const code = Number(answer.error.code ?? 0)
      const message = String(answer.error.message ?? 'refused').slice(0, 300)
      if (NOT_LOOKED_AT.has(code)) throw new RpcUnavailable(`${where}: ${method}: ${message}`)
      throw new RpcRefused(code, message)
    }
    if (!('result' in answer))
      throw new RpcUnavailable(`${where}: ${method}: the response is not JSON-RPC`)
    return answer.result as T
  }
}

/** Reads the body as text. Returns null, and stops reading, once it exceeds `most` bytes. */
export async function readText(
  response: Response,
  most = ANSWER_BYTES_MAX,
): Promise<string | null> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.byteLength
    if (bytes > most) return null
    pieces.push(piece)
  }
  return Buffer.concat(pieces, bytes).toString('utf8')
}

/**
 * Every address whose coins a payment spent, and every address that signed it. Screening checks
 * each of them. `complete` is false if a source of the payment has no address that could be
 * screened.
 */
export interface Senders {
  addresses: string[]
  complete: boolean
}

/** Lists each address once. A missing address makes the senders incomplete. */
export function sendersOf(addresses: readonly (string | null | undefined)[]): Senders {
  const valid = addresses.filter(
    (address): address is string => typeof address === 'string' && address !== '',
  )
  return { addresses: [...new Set(valid)], complete: valid.length === addresses.length }
}

/** A movement of coins to an address in a block. */
export interface ChainTransfer {
  /** Id of the transaction; if there is none, a name that is unique on the network. */
  txid: string
  /**
   * Output index (UTXO), log index (tokens), or -1 for an account-based transaction's native value;
   * 0 for a payment without a transaction, and -2, -3, … for what contracts paid in it (`frame`).
   * It is a position and does not identify the transfer: EVM numbers logs through the block.
   */
  position: number
  asset: string
  address: string
  amount: bigint
  /**
   * The account that sent the coins, if there is one. It is for display only; screening uses
   * `senders`.
   */
  sender: string | null
  /** Null if the block does not contain them (UTXO, Cardano); then the client must be queried. */
  senders: Senders | null
  /**
   * The block itself creates or releases these coins, so there is no sender to screen. A coinbase of
   * a UTXO network also matures before it can be spent.
   */
  coinbase: boolean
  /** The payment is in no transaction (validator withdrawals); absent: `txid` is its transaction. */
  withoutTransaction?: true
  /**
   * Value that a contract paid within the transaction. The endpoint's tracer reports it, and the
   * block does not prove it, so it is a claim that only the balance of the address confirms.
   */
  frame?: true
  /** Destination tag or memo in the form of `address_tag`; absent if the network has none. */
  tag?: string | null
  /** Cardano: tokens and reference script that the output contains in addition to its lovelace. */
  riders?: UtxoTokens
}

/** CashTokens of an output (CHIP-2022-02). */
export interface TokenFacts {
  /** Id of the transaction that created the category, 64 hexadecimal digits. */
  category: string
  /** Fungible tokens in base units, as decimal digits; `0` if there are none. */
  amount: string
  /** `commitment` in hexadecimal digits. */
  nft: { capability: 'none' | 'mutable' | 'minting'; commitment: string } | null
}

/**
 * Why coins at an address are not spent. `CASH_TOKENS`: the output carries tokens, which a transfer
 * would destroy. `TOKEN_ACCOUNT`: the tokens are in another token account of the address than the
 * associated one, from which transfers are made.
 */
export type AsideReason = 'CASH_TOKENS' | 'TOKEN_ACCOUNT'

/** Coins that an address received in a form that is not spent. */
export interface AsideCoin {
  txid: string
  /** Index of the output, or of the token account among the accounts of its transaction. */
  vout: number
  address: string
  /** Ticker; absent: the network's coin. */
  asset?: string
  /** Amount in the smallest unit of the asset. */
  amount: bigint
  reason: AsideReason
  /** CashTokens of the output; null if it has none, or the node returns them in no readable form. */
  token: TokenFacts | null
  /** Token account that received the tokens; absent if the network has none. */
  account?: string
}

/** Coins of an address in a place from which the platform does not send. */
export interface CoinsElsewhere {
  /** Where they are, such as the address of a token account. */
  place: string
  /** Amount in the smallest unit. */
  amount: bigint
  reason: AsideReason
}

/** What an address holds of an asset. */
export interface Holdings {
  /** Amount in the smallest unit from which the platform can send. */
  balance: bigint
  /** Coins that are not part of the balance; empty if there are none. */
  elsewhere: CoinsElsewhere[]
}

export interface ChainBlock {
  height: number
  hash: string
  parent: string
  txids: string[]
  transfers: ChainTransfer[]
  /**
   * Coins that are in no transfer (Bitcoin Cash, Solana); absent if the network has none.
   */
  aside?: AsideCoin[]
}

export interface ChainTip {
  height: number
  hash: string
  /** Highest block that the chain itself declares final; null if it declares none. */
  finalHeight: number | null
}

/** The newest block of an endpoint, by which its other answers are judged. */
export interface EndpointHead {
  height: number
  /** Time of the block in Unix milliseconds; null if the endpoint does not return it. */
  timeMs: number | null
  /** What the endpoint says that it cannot answer yet, or at all; null: nothing. */
  lacks: string | null
}

interface Included {
  state: 'included'
  height: number
  blockHash: string
  succeeded: boolean
  /** Fee in the smallest native unit; null if the chain does not report it. */
  fee: bigint | null
  /**
   * Tron: the unstaked TRX that the transaction withdrew, and its block's time (Unix milliseconds).
   */
  staking?: { withdrawn: bigint; time: number }
}

export type TransactionStatus = { state: 'absent' } | { state: 'mempool' } | Included

/**
 * Result of a broadcast. Only `accepted` is certain: after an error the transaction may still be
 * included, and a node may reject with its own message a transaction that it already has. Query the
 * transaction by its hash.
 */
export type BroadcastResult =
  | { kind: 'accepted' }
  | { kind: 'rejected'; reason: string }
  | { kind: 'unknown'; reason: string }

/**
 * Token transfer that the logs of an included transaction must contain. A receipt's status means
 * only that nothing reverted.
 */
export interface ExpectedTransfer {
  asset: Asset
  from: string
  to: string
}

/** Functions of every network's client. */
export interface ChainClient {
  /**
   * Checks that the endpoint serves the expected network.
   * @throws ChainError `WRONG_NETWORK`
   */
  probe(): Promise<void>
  tip(): Promise<ChainTip>
  /** Returns the newest block with its time, and what the endpoint says of its own state. */
  head(): Promise<EndpointHead>
  /** Returns the block at a height; null if there is none (yet). */
  block(height: number): Promise<ChainBlock | null>
  /**
   * Returns the state of a transaction.
   * @param expected tokens: `succeeded` is false if the transaction's logs lack this transfer
   * @param wants if `fee` is false, the fee may be null, so a response without the fee's data is
   *   accepted
   */
  status(
    hash: string,
    expected?: ExpectedTransfer,
    wants?: { fee: boolean },
  ): Promise<TransactionStatus>
  broadcast(raw: string): Promise<BroadcastResult>
  /**
   * Returns what an address has, in the asset's smallest unit; absent: the network's balances are
   * sets of coins.
   */
  balance?(address: string, asset: Asset): Promise<bigint>
  /**
   * Lists the methods and fields that the endpoint does not serve and that the client can do
   * without, one sentence for each.
   * @throws if a required one is missing
   */
  limits?(): Promise<string[]>
  /**
   * For several endpoints: returns a client of the endpoint that answers the first request, and of
   * no other. Absent: this client has one endpoint.
   */
  oneEndpoint?(): Promise<ChainClient>
  /**
   * Returns the balances of at most {@link BALANCES_MAX} addresses in the asset's smallest unit, in
   * their order; absent: each address needs its own request.
   * @param height block of the balances; absent: the newest
   * @throws ChainError `TOO_MANY_ADDRESSES`
   */
  balances?(addresses: readonly string[], asset: Asset, height?: number): Promise<bigint[]>
}

/** Maximum number of addresses of one call of `balances`. */
export const BALANCES_MAX = 500

/**
 * Checks the number of addresses of a call of `balances`.
 * @throws ChainError `TOO_MANY_ADDRESSES`
 */
export function checkCount({ length }: readonly string[]): void {
  if (length > BALANCES_MAX)
    throw new ChainError(
      'TOO_MANY_ADDRESSES',
      `at most ${BALANCES_MAX} balances are read by one call, not ${length}`,
    )
}

/**
 * State of an account on a network whose accounts have a sequence, a reserve, and tags (XRP,
 * Stellar).
 */
export interface AccountState {
  /** Balance in the smallest unit, including the reserve. */
  balance: bigint
  /** Sequence of the account's next transaction. */
  sequence: bigint
  /** Minimum balance of the account in the smallest unit. */
  reserve: bigint
  /** A payment without a tag or memo is rejected. */
  requiresTag: boolean
  /** The account accepts payments only from senders that it has allowed. */
  closed: boolean
}

export type LevelRates = Record<'low' | 'medium' | 'high', bigint>

/** Raises each level to at least the rate of the level below it. */
export function rising({ low, medium, high }: LevelRates): LevelRates {
  const middle = medium > low ? medium : low
  return { low, medium: middle, high: high > middle ? high : middle }
}

/**
 * Reads a price that an endpoint returned as an integer.
 * @throws RpcUnavailable, naming the field
 */
export function priceOf(network: string, method: string, field: string, value: unknown): bigint {
  if (value === undefined || value === null)
    throw new RpcUnavailable(`${network}: ${method} returned no ${field}`)
  if (!/^\d{1,30}$/.test(String(value)))
    throw new RpcUnavailable(`${network}: ${method} returned a ${field} that is not an integer`)
  return BigInt(String(value))
}

export interface TaggedClient extends ChainClient {
  /** Returns the account's state; null if it does not exist (yet). */
  account(address: string): Promise<AccountState | null>
  balance(address: string): Promise<bigint>
  /** Returns the minimum payment that creates an account. */
  activation(): Promise<bigint>
  /** Returns the fee of one payment by level, in the smallest native unit. */
  feeRates(): Promise<LevelRates>
  /** Returns the end of the validity of a transaction that is built now. Call it last. */
  validUntil(): Promise<number>
  /**
   * Returns true if the transaction can provably never be included any more: its validity ended
   * before a final ledger, and a history without gaps does not contain it.
   */
  isDead(hash: string, validUntil: number): Promise<boolean>
}

/** Signed bytes in hex and the hash by which the chain identifies them. */
export interface Signed {
  hash: string
  raw: string
}

/**
 * A client of a network whose transaction ids cover the signature: another signature over the same
 * message results in another hash (Solana, XRP).
 */
export interface ResignedClient {
  /**
   * Finds the included transaction of an unsigned message, whatever its signatures; null if there
   * is none.
   * @param account an account whose history contains the transaction
   * @param message the unsigned bytes, whose validity has ended
   * @throws ChainError if the history of its validity period is incomplete
   */
  findSigned(account: string, message: string, validUntil: number): Promise<Signed | null>
}
