import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { parseAmount } from '../amount.ts'
import { ignoreUnreadable, type ReportUnreadable } from '../unreadable.ts'
import {
  jsonRpc,
  RpcRefused,
  RpcTooLarge,
  RpcUnavailable,
  sendersOf,
  type AsideCoin,
  type BroadcastResult,
  type ChainBlock,
  type ChainClient,
  type ChainTip,
  type EndpointHead,
  type ChainTransfer,
  type Fetch,
  type JsonRpc,
  type LevelRates,
  type RpcEndpoint,
  type Senders,
  type TransactionStatus,
} from '../rpc.ts'
import { ChainError, type Checkpoint, type Network } from '../types.ts'
import { addressOf } from './address.ts'
import { splitTokens, TOKEN_PREFIX, tokenFacts } from './cash-tokens.ts'
import { FeeRates, type FeeReading } from './fee-rates.ts'

/**
 * Fields of Bitcoin Core's responses whose numbers are coins. They are read from the source text,
 * as satoshi.
 */
const COIN_FIELDS = new Set(['value', 'feerate', 'mempoolminfee', 'minrelaytxfee'])

/**
 * `ismweb`: output of Litecoin's extension blocks, without value and script. `tokenData`: Bitcoin
 * Cash, tokens of the output.
 */
interface CoreOutput {
  value?: bigint
  n: number
  scriptPubKey?: { hex?: string }
  ismweb?: boolean
  tokenData?: unknown
}
interface CoreTransaction {
  txid: string
  vin: { coinbase?: string; txid?: string; vout?: number }[]
  vout: CoreOutput[]
}
interface CoreBlock {
  hash: string
  height: number
  previousblockhash?: string
  nTx?: number
  tx: (CoreTransaction | string)[]
}

const TARGET_BLOCKS = { low: 24, medium: 6, high: 2 } as const
/** Core: RPC_VERIFY_ALREADY_IN_CHAIN (now RPC_VERIFY_ALREADY_IN_UTXO_SET). */
const ALREADY_IN_CHAIN = -27
/**
 * Core: RPC_INVALID_ADDRESS_OR_KEY, no such transaction or block; RPC_INVALID_PARAMETER, no block
 * of that height.
 */
const NOT_FOUND = -5
/** Core: RPC_IN_WARMUP, the node is loading its blocks. */
const IN_WARMUP = -28
const OUT_OF_RANGE = -8

/**
 * Returns whether an error has one of the given codes. Only these mean that something is absent: a
 * node that is loading, busy or rate-limited returns errors as well.
 */
function isRefusal(error: unknown, ...codes: number[]): boolean {
  return error instanceof RpcRefused && codes.includes(error.rpcCode)
}
/** Core's sentence for a transaction that is not in the mempool, while no index covers the blocks. */
const LACKS_INDEX = /-txindex|process of being indexed/
const TXINDEX_ADVICE = 'set txindex=1 at the node and let it finish its index'
/** Number of transactions that are fetched concurrently if a block contains only their ids. */
const FETCHED_AT_ONCE = 8
const TXID = /^[0-9a-f]{64}$/
const VOUT_MAX = 0x7fff_ffff
const VALUE_MAX = 21_000_000n * 100_000_000n
/** Height of the genesis block. Its coinbase is in no index, so nodes do not return it. */
const GENESIS_HEIGHT = 0

/** Client of a network that serves Bitcoin Core's JSON-RPC. */
export class UtxoClient implements ChainClient {
  readonly network: Network
  readonly #call: JsonRpc
  /** Caller for methods whose whole response is an amount. */
  readonly #callForCoins: JsonRpc
  readonly #feeRates: FeeRates
  /** The operator's checkpoint, in addition to the registry's. */
  readonly #checkpoint: Checkpoint | undefined
  /** Last result of {@link feeRates}, with its source; null before the first. */
  feeReading: FeeReading | null = null
  readonly #report: ReportUnreadable

  /** @param report is called with each transaction that has an unreadable output */
  constructor(
    network: Network,
    endpoint: RpcEndpoint,
    fetch: Fetch,
    now: () => number = Date.now,
    report: ReportUnreadable = ignoreUnreadable,
  ) {
    this.network = network
    this.#report = report
    this.#feeRates = new FeeRates(network, endpoint.fee_floors, now)
    this.#checkpoint = endpoint.checkpoint
    this.#call = jsonRpc(endpoint, fetch, (key, value, source) =>
      typeof value === 'number' && COIN_FIELDS.has(key) ? coins(value, source) : value,
    )
    this.#callForCoins = jsonRpc(endpoint, fetch, (key, value, source) =>
      typeof value === 'number' && key === 'result' ? (coins(value, source) ?? null) : value,
    )
    return checkedClient(this, network.code)
  }

  async probe(): Promise<void> {
    const genesis = await this.#call<string>('getblockhash', [0])
    const expected = this.network.genesis
    if (expected !== undefined && genesis !== expected) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint's genesis block is ${genesis}, not ${expected}`,
      )
    }
    for (const { height, hash } of [
      ...(this.network.checkpoints ?? []),
      ...(this.#checkpoint ? [this.#checkpoint] : []),
    ]) {
      const result = await this.#call<string>('getblockhash', [height])
      if (result !== hash) {
        throw new ChainError(
          'WRONG_NETWORK',
          `${this.network.code}: the endpoint's block ${height} is ${result}, not ${hash}`,
        )
      }
    }
  }

  async tip(): Promise<ChainTip> {
    const { blocks, bestblockhash } = await this.#call<{ blocks: number; bestblockhash: string }>(
      'getblockchaininfo',
      [],
    )
    return { height: blocks, hash: bestblockhash, finalHeight: await this.#locked(blocks) }
  }

  async head(): Promise<EndpointHead> {
    const { blocks, bestblockhash } = await this.#call<{ blocks: number; bestblockhash: string }>(
      'getblockchaininfo',
      [],
    )
    const { time } = await this.#call<{ time?: number }>('getblockheader', [bestblockhash])
    return {
      height: blocks,
      timeMs: time === undefined || !Number.isSafeInteger(time) ? null : time * 1000,
      lacks: await this.#missingIndex(blocks),
    }
  }

  /**
   * Returns why the node does not find transactions by their id; null if it does, or if it cannot
   * say (getindexinfo is missing in some forks).
   */
  async #missingIndex(blocks: number): Promise<string | null> {
    type Indexes = { txindex?: { synced?: boolean; best_block_height?: number } } | null
    let indexes: Indexes
    try {
      indexes = await this.#call<Indexes>('getindexinfo', ['txindex'])
    } catch (error) {
      if (error instanceof RpcRefused) return null
      throw error
    }
    const txindex = indexes?.txindex
    if (!txindex) return `the node has no index of transactions: ${TXINDEX_ADVICE}`
    if (txindex.synced !== false) return null
    return `the node builds its index of transactions (block ${String(txindex.best_block_height)} of ${blocks})`
  }

  /**
   * Dash: returns the highest block that is locked with enough confirmations, which also locks all
   * earlier blocks; null if plain confirmation depth reaches further.
   */
  async #locked(tip: number): Promise<number | null> {
    const least = this.network.utxo?.chainlock_confirmations
    if (least === undefined) return null
    const plain = tip - (this.network.confirmations ?? least) + 1
    for (let height = tip - least + 1; height > Math.max(0, plain); height--) {
      const { chainlock } = await this.#call<{ chainlock?: boolean }>('getblock', [
        await this.#call<string>('getblockhash', [height]),
        1,
      ])
      if (chainlock === true) return height
    }
    return null
  }

  async block(height: number): Promise<ChainBlock | null> {
    let block: CoreBlock
    let hash: string
    try {
      hash = await this.#call<string>('getblockhash', [height])
      block = await this.#wholeBlock(hash)
    } catch (error) {
      if (isRefusal(error, OUT_OF_RANGE, NOT_FOUND)) return null
      throw error
    }
    if (block.height !== height)
      throw new RpcUnavailable(`${this.network.code}: getblock returned a block of another height`)
    if (block.hash !== hash) this.#odd('getblock returned another block than requested')
    if (!Array.isArray(block.tx) || block.tx.length === 0)
      this.#odd(`getblock returned ${hash} without tx`)
    if (block.nTx !== undefined && block.nTx !== block.tx.length) {
      this.#odd(`getblock returned ${block.tx.length} of ${block.nTx} tx of ${hash}`)
    }
    if (height > GENESIS_HEIGHT && typeof block.previousblockhash !== 'string')
      this.#odd('getblock returned no previousblockhash')
    const transactions = await this.#transactions(block)
    const txids = new Set(transactions.map(({ txid }) => txid))
    if (txids.size !== transactions.length)
      this.#odd(`getblock returned a transaction of ${hash} twice`)
    return {
      height,
      hash: block.hash,
      parent: block.previousblockhash ?? '',
      txids: transactions.map((each) => each.txid),
      transfers: transactions.flatMap((each) => this.#transfersOf(each)),
      ...(this.#hasTokens ? { aside: transactions.flatMap((each) => this.#asideOf(each)) } : {}),
    }
  }

  /**
   * Returns a block with its transactions if the node returns them within the timeout; otherwise
   * with their ids, and each transaction is then read individually.
   */
  async #wholeBlock(hash: string): Promise<CoreBlock> {
    const ids = () =>
      this.#call<CoreBlock>('getblock', [hash, this.network.utxo?.block_verbosity === 1 ? true : 1])
    if (this.network.utxo?.block_verbosity === 1) return ids()
    try {
      return await this.#call<CoreBlock>('getblock', [hash, 2])
    } catch (error) {
      // Some nodes and proxies do not serve whole blocks; an unknown block is unknown by its ids too.
      if (error instanceof RpcTooLarge || error instanceof RpcRefused) return ids()
      throw error
    }
  }

  #odd(problem: string): never {
    throw new RpcUnavailable(`${this.network.code}: ${problem}`)
  }

  #scriptOf(txid: string, { scriptPubKey }: CoreOutput): Buffer {
    const hex = scriptPubKey?.hex
    if (typeof hex !== 'string')
      return this.#odd(`the node returned ${txid} without vout.scriptPubKey.hex`)
    return Buffer.from(hex, 'hex')
  }

  #transfersOf({ txid, vin, vout }: CoreTransaction): ChainTransfer[] {
    if (typeof txid !== 'string') return this.#odd('the node returned a transaction without txid')
    if (!Array.isArray(vout) || !Array.isArray(vin))
      return this.#odd(`the node returned ${txid} without vin or vout`)
    return vout.flatMap((output) => {
      // Outputs inside Litecoin's extension blocks have no address; only those that leave them do.
      if (output.ismweb === true) return []
      // An output of a future format, without a script and an amount, belongs to no address.
      if (output.scriptPubKey === undefined && output.value === undefined) {
        const reason = `output ${String(output.n)} has no script and no amount`
        this.#report({ network: this.network.code, kind: 'transaction', name: txid, reason })
        return []
      }
      const script = this.#scriptOf(txid, output)
      // The output carries CashTokens. Spending it as a coin would burn them, or be rejected.
      if (hasTokenData(output) || (this.#hasTokens && script[0] === TOKEN_PREFIX)) return []
      const address = addressOf(this.network, script)
      if (address === null) return []
      if (typeof output.value !== 'bigint')
        return this.#odd(`the node returned ${txid} without vout.value`)
      if (!Number.isSafeInteger(output.n))
        return this.#odd(`the node returned ${txid} without vout.n`)
      if (output.value === 0n) return []
      return [
        {
          txid,
          position: output.n,
          asset: this.network.native_asset,
          address,
          amount: output.value,
          sender: null,
          senders: null,
          coinbase: vin[0]?.coinbase !== undefined,
        },
      ]
    })
  }

  /**
   * Returns the outputs of a transaction at addresses that carry CashTokens. The transaction has
   * passed {@link #transfersOf}. An output with an invalid index or amount is left out, so that it
   * does not stop the scan.
   */
  #asideOf({ txid, vout }: CoreTransaction): AsideCoin[] {
    if (!TXID.test(txid)) return []
    return vout.flatMap((output): AsideCoin[] => {
      const hex = output.scriptPubKey?.hex
      if (typeof hex !== 'string' || !isOutput(output)) return []
      const script = Buffer.from(hex, 'hex')
      const split = splitTokens(script)
      if (!split && !hasTokenData(output)) return []
      const address = addressOf(this.network, split?.locking ?? script)
      const token = split?.facts ?? tokenFacts(output.tokenData)
      return address === null
        ? []
        : [{ txid, vout: output.n, address, amount: output.value, reason: 'CASH_TOKENS', token }]
    })
  }

  get #hasTokens(): boolean {
    return this.network.utxo?.cashaddr_prefix !== undefined
  }

  /**
   * Returns the ids of all transactions in the node's mempool (getrawmempool); each takes some 67
   * bytes in the response.
   * @throws RpcUnavailable if the response is malformed; RpcRefused if the endpoint does not serve
   *   the mempool
   */
  async waiting(): Promise<string[]> {
    const ids = await this.#call<unknown>('getrawmempool', [])
    if (
      !Array.isArray(ids) ||
      !ids.every((each): each is string => typeof each === 'string' && TXID.test(each))
    ) {
      throw new RpcUnavailable(`${this.network.code}: getrawmempool returned no ids`)
    }
    return ids
  }

  /**
   * Returns the transfers of mempool transactions. Transactions that the node no longer returns are
   * left out.
   */
  async waitingTransfers(txids: readonly string[]): Promise<ChainTransfer[]> {
    const matches = await eachOf(txids, async (txid): Promise<ChainTransfer[]> => {
      try {
        const transaction = await this.#call<CoreTransaction>('getrawtransaction', [txid, true])
        if (transaction.txid !== txid)
          throw new RpcUnavailable(
            `${this.network.code}: getrawtransaction returned another transaction`,
          )
        return this.#transfersOf(transaction)
      } catch (error) {
        if (isRefusal(error, NOT_FOUND)) return []
        throw error
      }
    })
    return matches.flat()
  }

  /**
   * Older nodes return only the ids: each transaction is then fetched, which requires their
   * transaction index.
   */
  async #transactions(block: CoreBlock): Promise<CoreTransaction[]> {
    const matches: CoreTransaction[] = []
    const ids: string[] = []
    for (const each of block.tx) {
      if (typeof each === 'string') ids.push(each)
      else matches.push(each)
    }
    if (block.height === GENESIS_HEIGHT) return matches
    matches.push(
      ...(await eachOf(ids, async (txid) => {
        const transaction = await this.#call<CoreTransaction>('getrawtransaction', [txid, true])
        return transaction.txid === txid
          ? transaction
          : this.#odd(`getrawtransaction returned another transaction than ${txid}`)
      })),
    )
    return matches
  }

  async status(hash: string): Promise<TransactionStatus> {
    let result: { blockhash?: string; confirmations?: number }
    try {
      result = await this.#call('getrawtransaction', [hash, true])
    } catch (error) {
      if (isRefusal(error, NOT_FOUND)) {
        // The same code as for an unknown transaction, but the transaction may be in a block.
        const reason = reasonOf(error)
        if (LACKS_INDEX.test(reason)) this.#odd(`${reason} (${TXINDEX_ADVICE})`)
        return { state: 'absent' }
      }
      throw error
    }
    if (!result.blockhash || !result.confirmations || result.confirmations < 1)
      return { state: 'mempool' }
    const header = await this.#call<{ height: number; confirmations: number }>('getblockheader', [
      result.blockhash,
    ])
    if (header.confirmations < 1) return { state: 'mempool' }
    return {
      state: 'included',
      height: header.height,
      blockHash: result.blockhash,
      succeeded: true,
      fee: null,
    }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      await this.#call('sendrawtransaction', [raw])
      return { kind: 'accepted' }
    } catch (error) {
      if (isRefusal(error, ALREADY_IN_CHAIN)) return { kind: 'accepted' }
      if (error instanceof RpcRefused) return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  /** Returns the full transaction in hex. */
  async rawTransaction(txid: string): Promise<string> {
    return this.#call<string>('getrawtransaction', [txid, false])
  }

  /**
   * Returns the address of every output that a transaction spends. Incomplete if a script has no
   * address: bare keys and scripts, extension blocks, future witness versions.
   * @throws if the node cannot return one of the spent transactions, because the sender is then
   *   unknown
   */
  async senders(txid: string): Promise<Senders> {
    const transaction = await this.#call<{
      vin: { coinbase?: string; txid?: string; vout?: number }[]
    }>('getrawtransaction', [txid, true])
    const parents = [...new Set(transaction.vin.flatMap((input) => input.txid ?? []))]
    const scripts = new Map<string, string[]>()
    await eachOf(parents, async (parent) => {
      const { vout } = await this.#call<Pick<CoreTransaction, 'vout'>>('getrawtransaction', [
        parent,
        true,
      ])
      scripts.set(
        parent,
        vout.map((output) =>
          output.ismweb === true ? '' : this.#scriptOf(parent, output).toString('hex'),
        ),
      )
    })
    // A withdrawal from Dash's credit pool spends nothing, so its sender is unknown.
    if (transaction.vin.length === 0) return { addresses: [], complete: false }
    return sendersOf(
      transaction.vin.map((input) => {
        if (input.txid === undefined) return null
        const script = scripts.get(input.txid)?.[input.vout as number]
        if (script === undefined)
          throw new RpcUnavailable(
            `${this.network.code}: ${input.txid} has no output that ${txid} spends`,
          )
        return addressOf(this.network, Buffer.from(script, 'hex'))
      }),
    )
  }

  /** Returns the value of an unspent output in satoshi, including the mempool, or null. */
  async unspent(txid: string, vout: number): Promise<bigint | null> {
    return (
      (await this.#call<{ value: bigint } | null>('gettxout', [txid, vout, true]))?.value ?? null
    )
  }

  /**
   * Returns a fee estimate; undefined if the node has none. Bitcoin Cash nodes serve only
   * `estimatefee`, which accepts no target.
   */
  async #estimate(blocks: number): Promise<bigint | undefined> {
    let rate: unknown
    try {
      rate = (await this.#call<{ feerate?: unknown } | null>('estimatesmartfee', [blocks]))?.feerate
    } catch (error) {
      if (!(error instanceof RpcRefused) || isRefusal(error, IN_WARMUP)) throw error
      try {
        rate = await this.#callForCoins<unknown>('estimatefee', [])
      } catch (other) {
        if (!(other instanceof RpcRefused)) throw other
      }
    }
    if (rate === undefined || rate === null || rate === 0n) return undefined
    return typeof rate === 'bigint'
      ? rate
      : this.#odd('the node returned a fee rate that is not a number of coins')
  }

  /**
   * Returns the rate below which the node accepts no transaction, in satoshi per 1000 vbytes; 0 if
   * it does not report one.
   */
  async #floor(): Promise<bigint> {
    try {
      const info = await this.#call<{ mempoolminfee?: unknown; minrelaytxfee?: unknown } | null>(
        'getmempoolinfo',
        [],
      )
      return [info?.mempoolminfee, info?.minrelaytxfee].reduce<bigint>(
        (most, each) => (typeof each === 'bigint' && each > most ? each : most),
        0n,
      )
    } catch (error) {
      if (error instanceof RpcRefused || error instanceof RpcUnavailable) return 0n
      throw error
    }
  }

  /**
   * Returns the fee rates from estimatesmartfee at 24, 6 and 2 blocks, processed by {@link
   * FeeRates}, in satoshi per 1000 vbytes.
   * @throws NoFeeEstimate if neither the node nor a setting provides a rate
   */
  async feeRates(): Promise<LevelRates> {
    const [low, medium, high, floor] = await Promise.all([
      this.#estimate(TARGET_BLOCKS.low),
      this.#estimate(TARGET_BLOCKS.medium),
      this.#estimate(TARGET_BLOCKS.high),
      this.#floor(),
    ])
    this.feeReading = this.#feeRates.read({ low, medium, high }, floor)
    return this.feeReading.rates
  }
}

const hasTokenData = ({ tokenData }: CoreOutput): boolean =>
  tokenData !== undefined && tokenData !== null

/** Returns whether an output has a valid index and amount. */
const isOutput = (output: CoreOutput): output is CoreOutput & { value: bigint } =>
  Number.isSafeInteger(output.n) &&
  output.n >= 0 &&
  output.n <= VOUT_MAX &&
  typeof output.value === 'bigint' &&
  output.value >= 0n &&
  output.value <= VALUE_MAX

/** Queries many ids, a few concurrently, and returns the results in order. */
async function eachOf<T>(ids: readonly string[], ask: (id: string) => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  for (let at = 0; at < ids.length; at += FETCHED_AT_ONCE) {
    answers.push(...(await Promise.all(ids.slice(at, at + FETCHED_AT_ONCE).map(ask))))
  }
  return answers
}

/**
 * Converts a decimal number to satoshi; undefined for -1, which nodes return if they have no value.
 */
function coins(value: number, source: string | undefined): bigint | undefined {
  return value < 0 ? undefined : parseAmount(source ?? String(value), 8)
}
