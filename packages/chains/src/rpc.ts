import { ChainError, type Asset, type Checkpoint, type Riders } from './types.ts'

/** Least fee rates by level, as decimal text in the network's `fee_rate_unit`. */
export type FeeFloors = Partial<Record<keyof LevelRates, string>>

/**
 * Where an RPC endpoint is and how to authenticate to it. `fee_floors` (Bitcoin and its siblings):
 * least rates of each level, which also count where the node has no estimate; in place of the
 * registry's. `checkpoint` (the same networks): a block that the node must have, besides the
 * registry's. `requests_per_day`: what the endpoint's plan allows.
 */
export interface RpcEndpoint {
  url: string
  username?: string
  password?: string
  headers?: Record<string, string>
  fee_floors?: FeeFloors
  checkpoint?: Checkpoint
  requests_per_day?: number
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/**
 * The endpoint could not be reached, was too slow, or answered with something that is not its
 * protocol.
 */
export class RpcUnavailable extends ChainError {
  constructor(message: string) {
    super('RPC_UNAVAILABLE', message)
    this.name = 'RpcUnavailable'
  }
}

/**
 * The answer did not come whole in its time, or is larger than is read: smaller questions may be
 * answered.
 */
export class RpcTooLarge extends RpcUnavailable {}

/**
 * The endpoint answered, and what it shows of one transaction is not that transaction. It says
 * nothing about others.
 */
export class RpcMismatch extends RpcUnavailable {
  constructor(message: string) {
    super(message)
    this.name = 'RpcMismatch'
  }
}

/**
 * The node has no estimate of the fee rate that gets a transaction into a block, and nothing else
 * says one.
 */
export class NoFeeEstimate extends RpcUnavailable {
  constructor(network: string, level: keyof LevelRates) {
    super(
      `${network}: the node has no estimate of fee rates now, none was read within two hours, and no floor is configured for the level ${level}; set fee_rate, or set fee_floors of ${network} in custody.config.json`,
    )
    this.name = 'NoFeeEstimate'
  }
}

/** The endpoint answered with an error of its own. */
export class RpcRefused extends ChainError {
  readonly rpcCode: number
  constructor(rpcCode: number, message: string) {
    super('RPC_REFUSED', message)
    this.name = 'RpcRefused'
    this.rpcCode = rpcCode
  }
}

/**
 * The chain itself would refuse a transaction, by the endpoint's word: it was carried out there,
 * and failed. Only this may end a transfer; any other error is the endpoint's own trouble.
 */
export class RpcReverted extends RpcRefused {
  constructor(rpcCode: number, message: string) {
    super(rpcCode, message)
    this.name = 'RpcReverted'
  }
}

const RPC_TIMEOUT_MS = 8000
/**
 * For answers that hold a whole block, its receipts, or a page of transactions: up to some hundred
 * megabytes, which a hosted node reads from its disk and sends over a shared line.
 */
const BLOCK_TIMEOUT_MS = 60_000
/** Methods and paths (Tron, Cardano) with such an answer. */
const BLOCK_ANSWERS = new RegExp(
  '^(?:getblock|getBlock|eth_getBlockByNumber|eth_getBlockReceipts|eth_getLogs|ledger|getTransactions|getLedgers|getrawmempool' +
    '|wallet/getblockbynum|wallet/gettransactioninfobyblocknum|/blocks/\\w+/txs/cbor)$',
)

/** Parameters by which such a method answers a block's head alone (EVM, Solana, XRP). */
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
 * HTTP statuses by which an endpoint, or a proxy before it, says that it has not looked:
 * credentials, quotas, overload. Nodes answer errors of their own with 200, 400, 404 and 500.
 */
const isNotLookedAt = (status: number): boolean =>
  [401, 402, 403, 407, 408, 425, 429].includes(status) || status > 500
/**
 * Errors that say the same in the body: limit exceeded (EIP-1474), node is unhealthy (Solana),
 * HTTP's own number.
 */
const NOT_LOOKED_AT = new Set([-32005, 429])
const ANSWER_BYTES_MAX = 256 * 1024 * 1024

/** A JSON-RPC caller. Numbers that need exactness are read by `reviver` from their source text. */
export type JsonRpc = <T>(method: string, params: unknown[] | Record<string, unknown>) => Promise<T>

/** What is asked over HTTP. `what` names it in errors. */
export interface Exchange {
  url: string
  what: string
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string | Buffer
  /** Its answer is a block's head alone, whatever `what` answers otherwise. */
  isHead?: boolean
}

/**
 * One exchange with an endpoint, as its settings say who asks. The URL may hold a provider's key:
 * errors name the host only.
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
  // Not AbortSignal.timeout, whose timer and error come for every question, the answered ones too.
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
  if (text === null) throw new RpcTooLarge(`${where}: answer is too large`)
  return { status, text }
}

/** JSON.parse whose reviver sees the source text of a number. */
export const parseWithSource = JSON.parse as (
  text: string,
  reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
) => unknown

/**
 * Makes a JSON-RPC caller over HTTP POST.
 * @param reviver as JSON.parse's, with the source text of numbers
 * @throws RpcUnavailable, RpcRefused (by the returned function)
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
      throw new RpcUnavailable(`${where}: ${method}: answer is not JSON`)
    }
    if (typeof answer !== 'object' || answer === null)
      throw new RpcUnavailable(`${where}: ${method}: answer is not JSON-RPC`)
    if (isNotLookedAt(status))
      throw new RpcUnavailable(`${where}: ${method}: HTTP status ${status}`)
    if (answer.error) {
      const code = Number(answer.error.code ?? 0)
      const message = String(answer.error.message ?? 'refused').slice(0, 300)
      if (NOT_LOOKED_AT.has(code)) throw new RpcUnavailable(`${where}: ${method}: ${message}`)
      throw new RpcRefused(code, message)
    }
    if (!('result' in answer))
      throw new RpcUnavailable(`${where}: ${method}: answer is not JSON-RPC`)
    return answer.result as T
  }
}

/**
 * The body as text, or null where it is larger than `most` bytes: it is cut off there, while it is
 * read.
 */
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
 * Every address whose coins a payment took, and every one that signed for it: screening asks about
 * each of them. Incomplete where something that paid has no address that could be screened.
 */
export interface Senders {
  addresses: string[]
  complete: boolean
}

/** Each address once; an address that is missing makes the senders incomplete. */
export function sendersOf(addresses: readonly (string | null | undefined)[]): Senders {
  const known = addresses.filter(
    (address): address is string => typeof address === 'string' && address !== '',
  )
  return { addresses: [...new Set(known)], complete: known.length === addresses.length }
}

/** A movement of coins to an address, as a block shows it. */
export interface ChainTransfer {
  txid: string
  /**
   * Output index (UTXO), log index (tokens), -1 for an account-based transaction's native value. A
   * place, and no identity: EVM counts logs through the block.
   */
  position: number
  asset: string
  address: string
  amount: bigint
  /** The account that the coins left, where there is one; shown, and never all that is screened. */
  sender: string | null
  /** Null: the block does not tell (UTXO, Cardano), and the client is asked. */
  senders: Senders | null
  coinbase: boolean
  /** Destination tag or memo, as `address_tag` spells it; absent where the network has none. */
  tag?: string | null
  /** Cardano: what rides on the output beside its lovelace. */
  riders?: Riders
}

/** CashTokens of an output (CHIP-2022-02). */
export interface TokenFacts {
  /** Id of the transaction that made the category, 64 hexadecimal digits. */
  category: string
  /** Fungible tokens in base units, as decimal digits; `0`: none. */
  amount: string
  /** `commitment` in hexadecimal digits. */
  nft: { capability: 'none' | 'mutable' | 'minting'; commitment: string } | null
}

/** An output at an address that is not spent as a coin, because of what it carries. */
export interface AsideCoin {
  txid: string
  vout: number
  address: string
  /** Smallest unit of the network's coin. */
  amount: bigint
  reason: 'CASH_TOKENS'
  /** Null: the node does not show them in a form that can be read. */
  token: TokenFacts | null
}

export interface ChainBlock {
  height: number
  hash: string
  parent: string
  txids: string[]
  transfers: ChainTransfer[]
  /** Outputs that are in no transfer (Bitcoin Cash); absent where the network has none. */
  aside?: AsideCoin[]
}

export interface ChainTip {
  height: number
  hash: string
  /** Highest block that the chain itself calls final; null where it does not. */
  finalHeight: number | null
}

interface Included {
  state: 'included'
  height: number
  blockHash: string
  succeeded: boolean
  /** Smallest native unit; null where the chain does not say. */
  fee: bigint | null
  /** Tron: unstaked TRX that it took back, and the time of its block (Unix milliseconds). */
  staking?: { withdrawn: bigint; time: number }
}

export type TransactionStatus = { state: 'absent' } | { state: 'mempool' } | Included

/**
 * An error of a broadcast says nothing about the transaction's fate: only `accepted` is knowledge.
 * A node may reject what it has already, in words of its own: the transaction is asked for by its
 * hash.
 */
export type BroadcastResult =
  | { kind: 'accepted' }
  | { kind: 'rejected'; reason: string }
  | { kind: 'unknown'; reason: string }

/**
 * What an included token transfer must have left in its logs: a receipt's status says only that
 * nothing reverted.
 */
export interface ExpectedTransfer {
  asset: Asset
  from: string
  to: string
}

/** What every network's client can do. */
export interface ChainClient {
  /** Checks that the endpoint serves the network it should. Throws ChainError `WRONG_NETWORK`. */
  probe(): Promise<void>
  tip(): Promise<ChainTip>
  /** Null where no block has that height (yet). */
  block(height: number): Promise<ChainBlock | null>
  /**
   * @param expected tokens: `succeeded` is false where the transfer is not in the transaction's
   *   logs
   * @param wants `fee` false: the fee may be null, so that an answer without what it follows from
   *   is enough
   */
  status(
    hash: string,
    expected?: ExpectedTransfer,
    wants?: { fee: boolean },
  ): Promise<TransactionStatus>
  broadcast(raw: string): Promise<BroadcastResult>
  /**
   * What the endpoint does not serve and is done without: a sentence for each method or field.
   * @throws where a needed one is missing
   */
  limits?(): Promise<string[]>
  /**
   * Of several endpoints: a client of the one that answers its first question alone. Absent: this
   * client asks one endpoint.
   */
  oneEndpoint?(): Promise<ChainClient>
}

/**
 * What a client of a network tells whose accounts have a sequence, a reserve, and tags (XRP,
 * Stellar).
 */
export interface AccountState {
  /** Smallest unit, with the reserve. */
  balance: bigint
  /** Sequence of the next transaction. */
  sequence: bigint
  /** What must stay on the account. */
  reserve: bigint
  /** A payment without tag or memo is refused. */
  requiresTag: boolean
  /** Takes payments only from senders that it has allowed. */
  closed: boolean
}

export type LevelRates = Record<'low' | 'medium' | 'high', bigint>

/** No level below a lower one. */
export function rising({ low, medium, high }: LevelRates): LevelRates {
  const middle = medium > low ? medium : low
  return { low, medium: middle, high: high > middle ? high : middle }
}

/** A price that an endpoint answers, a whole number. @throws RpcUnavailable that names the field */
export function priceOf(network: string, method: string, field: string, value: unknown): bigint {
  if (value === undefined || value === null)
    throw new RpcUnavailable(`${network}: ${method} returned no ${field}`)
  if (!/^\d{1,30}$/.test(String(value)))
    throw new RpcUnavailable(`${network}: ${method} returned a ${field} that is not an integer`)
  return BigInt(String(value))
}

export interface TaggedClient extends ChainClient {
  /** Null where the account does not exist (yet). */
  account(address: string): Promise<AccountState | null>
  balance(address: string): Promise<bigint>
  /** What a new account must be given at least. */
  activation(): Promise<bigint>
  /** Smallest native unit for one payment. */
  feeRates(): Promise<LevelRates>
  /** The end of a transaction's life that is built now; read last. */
  validUntil(): Promise<number>
  /**
   * True where the transaction can provably never be included any more: past its end on a final
   * ledger, and absent from a history without gaps.
   */
  isDead(hash: string, validUntil: number): Promise<boolean>
}

/** Signed bytes in hex and what the chain knows them by. */
export interface Signed {
  hash: string
  raw: string
}

/**
 * A client of a network whose ids cover the signature: another signature over the same message is
 * another hash (Solana, XRP).
 */
export interface ResignedClient {
  /**
   * The included transaction of an unsigned message, whatever signatures it bears; null: there is
   * none.
   * @param account one whose history shows it
   * @param message the unsigned bytes, whose life is over
   * @throws ChainError where the history of that life is not shown whole
   */
  findSigned(account: string, message: string, validUntil: number): Promise<Signed | null>
}
