import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { parseAmount } from '../amount.ts'
import {
  jsonRpc,
  priceOf,
  rising,
  RpcRefused,
  RpcUnavailable,
  sendersOf,
  type AccountState,
  type BroadcastResult,
  type ChainBlock,
  type ChainTip,
  type EndpointHead,
  type ChainTransfer,
  type Fetch,
  type JsonRpc,
  type LevelRates,
  type ResignedClient,
  type RpcEndpoint,
  type Signed,
  type TaggedClient,
  type TransactionStatus,
} from '../rpc.ts'
import { ChainError, type Network } from '../types.ts'
import { LEDGERS_TO_LIVE } from './build.ts'
import { identify } from './transaction.ts'

const XRP_DECIMALS = 6
const REQUIRE_DESTINATION_TAG = 0x0002_0000
const DEPOSIT_AUTHORISATION = 0x0100_0000
/**
 * Number of ledgers below a transaction's last ledger that are searched for it; it exceeds the
 * lifetime.
 */
const SEARCHED_LEDGERS = LEDGERS_TO_LIVE + 40
/**
 * Maximum number of pages of an account's history that are read for the ledgers of one
 * transaction's lifetime.
 */
const PAGES_MAX = 50
const PAGE = 200
const RESERVES_FRESH_MS = 60_000
/**
 * Transaction types that send XRP to an account without its signature. The remaining balance of a
 * deleted account is a payment too.
 */
const PAYING = new Set(['Payment', 'AccountDelete'])
/**
 * Transaction types that anyone can complete, by the ledger entry that contains the payer. Checks
 * are left out, because only their receiver cashes them.
 */
const HOLDING: Record<string, string | undefined> = {
  EscrowFinish: 'Escrow',
  PaymentChannelClaim: 'PayChannel',
}
/** Results of `submit` that mean that the server has the transaction. */
const HELD = /^(?:tes|tec|terQUEUED|terPRE_SEQ|tefALREADY)/

interface Answer {
  status?: string
  error?: string
  error_message?: string
  error_code?: number
  validated?: boolean
  searched_all?: boolean
}
interface ServerInfo extends Answer {
  info: {
    network_id?: number
    complete_ledgers?: string
    amendment_blocked?: boolean
    validated_ledger?: {
      hash: string
      seq: number
      /** Seconds since the ledger was closed. */
      age?: number
      reserve_base_xrp?: unknown
      reserve_inc_xrp?: unknown
    }
  }
}
interface LedgerTransaction {
  hash: string
  TransactionType: string
  Account: string
  Delegate?: string
  Destination?: string
  DestinationTag?: number
  metaData?: Meta
  meta?: Meta
}
/** An escrow or a payment channel. */
interface Held {
  Account?: string
  Destination?: string
  DestinationTag?: number
  Amount?: unknown
  Balance?: unknown
}
interface Change {
  LedgerEntryType?: string
  FinalFields?: Held
  PreviousFields?: Held
}
interface Meta {
  TransactionResult: string
  delivered_amount?: unknown
  AffectedNodes?: { DeletedNode?: Change; ModifiedNode?: Change }[]
}
interface Paid {
  from: string
  to: string
  tag: number | undefined
  amount: bigint
}
interface Ledger extends Answer {
  ledger_hash: string
  ledger_index: number
  ledger: {
    parent_hash: string
    ledger_hash?: string
    transaction_hash?: string
    transactions?: LedgerTransaction[]
  }
}
interface Tx extends Answer {
  ledger_index?: number
  Fee?: string
  meta?: Meta
}
interface AccountTx extends Answer {
  ledger_index_min?: number
  ledger_index_max?: number
  marker?: unknown
  transactions?: { tx_blob: string }[]
}
interface AccountInfo extends Answer {
  account_data: { Balance: string; Sequence: number; OwnerCount: number; Flags: number }
}
interface Fee extends Answer {
  drops?: Record<'base_fee' | 'median_fee' | 'minimum_fee' | 'open_ledger_fee', unknown>
}
interface Submit extends Answer {
  engine_result: string
  engine_result_message: string
}

interface Reserves {
  base: bigint
  increment: bigint
  at: number
}

/** Client of a rippled server (JSON-RPC, API version 1). A validated ledger is final. */
export class XrpClient implements TaggedClient, ResignedClient {
  readonly network: Network
  readonly #json: JsonRpc
  readonly #now: () => number
  #reserves: Reserves | null = null

  constructor(network: Network, endpoint: RpcEndpoint, fetch: Fetch, now: () => number = Date.now) {
    this.network = network
    this.#json = jsonRpc(endpoint, fetch)
    this.#now = now
    return checkedClient(this, network.code)
  }

  /** Calls a method. rippled returns its errors inside of the result. */
  async #call<T extends Answer>(
    method: string,
    parameters: Record<string, unknown> = {},
  ): Promise<T> {
    const result = await this.#json<T>(method, [{ ...parameters, api_version: 1 }])
    if (typeof result !== 'object' || result === null)
      throw new RpcUnavailable(
        `${this.network.code}: ${method}: the response is not in the format of rippled`,
      )
    if (result.status === 'error' || result.error !== undefined) throw new XrpRefused(result)
    return result
  }

  /** Calls a method; null if the server returns exactly this error. */
  async #unless<T extends Answer>(
    error: string,
    method: string,
    parameters: Record<string, unknown>,
  ): Promise<T | null> {
    try {
      return await this.#call<T>(method, parameters)
    } catch (thrown) {
      if (thrown instanceof XrpRefused && thrown.error === error) return null
      throw thrown
    }
  }

  async probe(): Promise<void> {
    const { info } = await this.#call<ServerInfo>('server_info')
    const id = info.network_id ?? 0
    if (id !== (this.network.network_id ?? 0)) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint serves network id ${id}, not ${this.network.network_id ?? 0}`,
      )
    }
  }

  async #validated(): Promise<{ hash: string; seq: number; age?: number; lacks: string | null }> {
    const { info } = await this.#call<ServerInfo>('server_info')
    if (!info.validated_ledger)
      throw new RpcUnavailable(`${this.network.code}: the server has no validated ledger yet`)
    const {
      hash,
      seq,
      age,
      reserve_base_xrp: base,
      reserve_inc_xrp: increment,
    } = info.validated_ledger
    if (!Number.isSafeInteger(seq) || typeof hash !== 'string') {
      throw new RpcUnavailable(
        `${this.network.code}: server_info returned a validated_ledger without seq or hash`,
      )
    }
    const reserves = { base: dropsOf(base), increment: dropsOf(increment) }
    // Ledgers are read even without the reserves; only functions that depend on them wait.
    if (reserves.base !== null && reserves.increment !== null) {
      this.#reserves = { base: reserves.base, increment: reserves.increment, at: this.#now() }
    }
    const lacks =
      info.amendment_blocked === true
        ? 'the server is amendment blocked: it does not know the rules of the ledger, update it'
        : null
    return { hash, seq, ...(Number.isSafeInteger(age) && Number(age) >= 0 ? { age } : {}), lacks }
  }

  async #reserve(): Promise<Reserves> {
    if (!this.#reserves || this.#now() - this.#reserves.at > RESERVES_FRESH_MS)
      await this.#validated()
    const reserves = this.#reserves as Reserves | null
    if (!reserves)
      throw new RpcUnavailable(
        `${this.network.code}: server_info returned no reserve_base_xrp or reserve_inc_xrp`,
      )
    return reserves
  }

  async tip(): Promise<ChainTip> {
    const { seq, hash } = await this.#validated()
    return { height: seq, hash, finalHeight: seq }
  }

  async head(): Promise<EndpointHead> {
    const { seq, age, lacks } = await this.#validated()
    return { height: seq, timeMs: age === undefined ? null : this.#now() - age * 1000, lacks }
  }

  async block(height: number): Promise<ChainBlock | null> {
    const result = await this.#unless<Ledger>('lgrNotFound', 'ledger', {
      ledger_index: height,
      transactions: true,
      expand: true,
    })
    if (!result?.validated) return null
    if (Number(result.ledger_index) !== height)
      throw new RpcUnavailable(`${this.network.code}: ledger returned a block of another height`)
    const transactions = result.ledger?.transactions ?? []
    this.#check(result, transactions)
    return {
      height,
      hash: result.ledger_hash,
      parent: result.ledger.parent_hash,
      txids: transactions.map(({ hash }) => hash),
      transfers: transactions.flatMap((each) => this.#transfers(each)),
    }
  }

  /**
   * Checks a ledger.
   * @throws RpcUnavailable if the ledger contradicts itself, or lacks required data
   */
  #check(
    { ledger_index: index, ledger_hash: hash, ledger }: Ledger,
    transactions: readonly LedgerTransaction[],
  ): void {
    const refuse = (problem: string): never => {
      throw new RpcUnavailable(`${this.network.code}: ledger returned ${index} ${problem}`)
    }
    if (typeof hash !== 'string' || typeof ledger?.parent_hash !== 'string')
      refuse('without ledger_hash or parent_hash')
    if (ledger.ledger_hash !== undefined && ledger.ledger_hash !== hash) refuse('with two hashes')
    if (
      transactions.length === 0 &&
      ledger.transaction_hash !== undefined &&
      !/^0*$/.test(ledger.transaction_hash)
    ) {
      refuse('without its transactions')
    }
    const seen = new Set<string>()
    for (const each of transactions) {
      if (typeof each?.hash !== 'string') refuse('with a transaction without hash')
      const text = JSON.stringify(each)
      if (seen.has(text)) refuse(`with ${each.hash} twice`)
      seen.add(text)
      const meta = each.metaData ?? each.meta
      if (meta && typeof meta.TransactionResult !== 'string')
        refuse(`with ${each.hash} without TransactionResult`)
    }
  }

  #transfers(transaction: LedgerTransaction): ChainTransfer[] {
    const meta = transaction.metaData ?? transaction.meta
    if (!meta)
      throw new RpcUnavailable(
        `${this.network.code}: the ledger contains a transaction without its outcome`,
      )
    const paid = meta.TransactionResult === 'tesSUCCESS' ? paidBy(transaction, meta) : null
    if (!paid || paid.amount <= 0n || paid.from === paid.to) return []
    const agents = transaction.Delegate === undefined ? [] : [transaction.Delegate]
    return [
      {
        txid: transaction.hash,
        position: 0,
        asset: this.network.native_asset,
        address: paid.to,
        amount: paid.amount,
        sender: typeof paid.from === 'string' ? paid.from : null,
        senders: sendersOf([paid.from, transaction.Account, ...agents]),
        coinbase: false,
        tag: paid.tag === undefined ? null : String(paid.tag),
      },
    ]
  }

  async status(hash: string): Promise<TransactionStatus> {
    const result = await this.#unless<Tx>('txnNotFound', 'tx', { transaction: hash, binary: false })
    if (!result) return { state: 'absent' }
    if (!result.validated || result.ledger_index === undefined) return { state: 'mempool' }
    const { ledger_hash: blockHash } = await this.#call<Ledger>('ledger', {
      ledger_index: result.ledger_index,
    })
    return {
      state: 'included',
      height: result.ledger_index,
      blockHash,
      succeeded: result.meta?.TransactionResult === 'tesSUCCESS',
      fee: result.Fee === undefined ? null : BigInt(result.Fee),
    }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      const answer = await this.#call<Submit>('submit', { tx_blob: raw.toUpperCase() })
      if (HELD.test(answer.engine_result)) return { kind: 'accepted' }
      return {
        kind: 'rejected',
        reason: `${answer.engine_result}: ${answer.engine_result_message}`,
      }
    } catch (error) {
      if (error instanceof RpcRefused) return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  async account(address: string): Promise<AccountState | null> {
    const result = await this.#unless<AccountInfo>('actNotFound', 'account_info', {
      account: address,
      ledger_index: 'validated',
    })
    if (!result) return null
    const { Balance, Sequence, OwnerCount, Flags } = result.account_data
    const { base, increment } = await this.#reserve()
    return {
      balance: BigInt(Balance),
      sequence: BigInt(Sequence),
      reserve: base + BigInt(OwnerCount) * increment,
      requiresTag: (Flags & REQUIRE_DESTINATION_TAG) !== 0,
      closed: (Flags & DEPOSIT_AUTHORISATION) !== 0,
    }
  }

  async balance(address: string): Promise<bigint> {
    return (await this.account(address))?.balance ?? 0n
  }

  async activation(): Promise<bigint> {
    return (await this.#reserve()).base
  }

  /**
   * Returns the fee rates. Under load, `minimum_fee` is the fee for the queue, and
   * `open_ledger_fee` the fee for the open ledger.
   */
  async feeRates(): Promise<LevelRates> {
    const { drops } = await this.#call<Fee>('fee')
    const of = (name: keyof NonNullable<Fee['drops']>) =>
      priceOf(this.network.code, 'fee', `drops.${name}`, drops?.[name])
    const most = (...values: bigint[]) => values.reduce((a, b) => (a > b ? a : b))
    return rising({
      low: most(of('base_fee'), of('minimum_fee')),
      medium: most(of('base_fee'), of('open_ledger_fee')),
      high: most(of('open_ledger_fee'), of('median_fee')),
    })
  }

  async validUntil(): Promise<number> {
    return (await this.#validated()).seq + LEDGERS_TO_LIVE
  }

  async isDead(hash: string, validUntil: number): Promise<boolean> {
    if ((await this.#validated()).seq <= validUntil) return false
    try {
      await this.#call<Tx>('tx', {
        transaction: hash,
        binary: false,
        min_ledger: Math.max(1, validUntil - SEARCHED_LEDGERS),
        max_ledger: validUntil,
      })
      return false
    } catch (error) {
      // Only a server that has searched every ledger of the range can report that the transaction
      // is absent.
      if (error instanceof XrpRefused && error.error === 'txnNotFound') return error.searchedAll
      throw error
    }
  }

  /**
   * See {@link ResignedClient}. The id of a transaction is a hash that also covers its signature.
   */
  async findSigned(account: string, message: string, validUntil: number): Promise<Signed | null> {
    const from = Math.max(1, validUntil - SEARCHED_LEDGERS)
    let marker: unknown
    for (let page = 0; page < PAGES_MAX; page++) {
      const result = await this.#call<AccountTx>('account_tx', {
        account,
        ledger_index_min: from,
        ledger_index_max: validUntil,
        binary: true,
        limit: PAGE,
        ...(marker === undefined ? {} : { marker }),
      })
      // The response contains the ledgers that were searched, which are fewer if the server does
      // not keep all.
      const isWhole =
        result.validated === true &&
        Number(result.ledger_index_min) <= from &&
        Number(result.ledger_index_max) >= validUntil
      if (!isWhole || !Array.isArray(result.transactions)) {
        throw new RpcUnavailable(
          `${this.network.code}: account_tx does not cover ledgers ${from} to ${validUntil}`,
        )
      }
      for (const { tx_blob: blob } of result.transactions) {
        const signed = identify(blob)
        if (signed?.message === message) return { hash: signed.hash, raw: blob.toLowerCase() }
      }
      if (result.marker === undefined || result.marker === null) return null
      marker = result.marker
    }
    throw new RpcUnavailable(
      `${this.network.code}: the history of ${account} is too long to be searched`,
    )
  }
}

/** Converts a number of XRP to drops; null if it cannot be read. */
function dropsOf(xrp: unknown): bigint | null {
  if (typeof xrp !== 'number' && typeof xrp !== 'string') return null
  try {
    return parseAmount(String(xrp), XRP_DECIMALS)
  } catch {
    return null
  }
}

/** Reads an XRP amount in drops. Tokens are objects; payments before 2014 contain "unavailable". */
const drops = (amount: unknown): bigint =>
  typeof amount === 'string' && /^\d+$/.test(amount) ? BigInt(amount) : 0n

/** Returns the XRP that a successful transaction paid to an account without its signature. */
function paidBy(transaction: LedgerTransaction, meta: Meta): Paid | null {
  if (PAYING.has(transaction.TransactionType)) {
    // The delivered amount is used, never the Amount field: a partial payment delivers less.
    const { Account: from, Destination: to, DestinationTag: tag } = transaction
    return to === undefined ? null : { from, to, tag, amount: drops(meta.delivered_amount) }
  }
  const kind = HOLDING[transaction.TransactionType]
  const changes = (meta.AffectedNodes ?? []).map(
    ({ DeletedNode, ModifiedNode }) => DeletedNode ?? ModifiedNode,
  )
  const change =
    kind === undefined ? undefined : changes.find((each) => each?.LedgerEntryType === kind)
  const {
    Account: from,
    Destination: to,
    DestinationTag: tag,
    Amount,
    Balance,
  } = change?.FinalFields ?? {}
  if (from === undefined || to === undefined) return null
  // A channel's balance counts what it has paid so far.
  const before = change?.PreviousFields?.Balance
  return {
    from,
    to,
    tag,
    amount:
      kind === 'Escrow'
        ? drops(Amount)
        : before === undefined
          ? 0n
          : drops(Balance) - drops(before),
  }
}

class XrpRefused extends RpcRefused {
  readonly error: string
  readonly searchedAll: boolean
  constructor(answer: Answer) {
    const error = answer.error ?? 'unknown'
    super(answer.error_code ?? 0, `${error}: ${answer.error_message ?? 'refused'}`.slice(0, 300))
    this.error = error
    this.searchedAll = answer.searched_all === true
  }
}
