import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import {
  exchange,
  RpcMismatch,
  RpcRefused,
  RpcUnavailable,
  sendersOf,
  type BroadcastResult,
  type ChainBlock,
  type ChainClient,
  type ChainTip,
  type EndpointHead,
  type ChainTransfer,
  type Fetch,
  type LevelRates,
  type RpcEndpoint,
  type Senders,
  type TransactionStatus,
} from '../rpc.ts'
import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { ignoreUnreadable, type ReportUnreadable } from '../unreadable.ts'
import { ChainError, type Network, type UtxoTokens } from '../types.ts'
import { addressText, stakeAddressText } from './address.ts'
import { fundingOf, openTransaction } from './body.ts'
import { SLOTS_TO_LIVE, type Parameters } from './build.ts'

const PAGE = 100
const PARAMETERS_FRESH_MS = 600_000
const NOT_FOUND = 404
/**
 * HTTP statuses of a broadcast that concern the transaction: it breaks a rule, or the node's pool
 * is full.
 */
const REFUSED = new Set([400, 425])
/**
 * Number of blocks above a transaction's last slot before it is considered dead, if the network
 * specifies no depth.
 */
const DEPTH = 15

interface Block {
  time?: number
  hash: string
  height: number | null
  slot: number | null
  previous_block: string | null
  tx_count: number
  output?: string | null
}
interface Found {
  block_height: number
  block: string
  fees: string
  valid_contract: boolean
}
interface Utxos {
  inputs: { address: string | null; collateral: boolean; reference?: boolean }[]
  outputs: {
    output_index: number
    amount: { unit: string; quantity: string }[]
    collateral: boolean
    consumed_by_tx?: string | null
  }[]
}

/**
 * Client of Blockfrost's API, hosted or self-hosted. Amounts are read from the transactions' own
 * bytes.
 */
export class CardanoClient implements ChainClient {
  readonly network: Network
  readonly #endpoint: RpcEndpoint
  readonly #fetch: Fetch
  readonly #now: () => number
  readonly #report: ReportUnreadable
  #parameters: { value: Parameters; at: number } | null = null

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
    this.#endpoint = endpoint
    this.#fetch = fetch
    this.#now = now
    return checkedClient(this, network.code)
  }

  async #ask(path: string, body?: Uint8Array): Promise<unknown> {
    const base = this.#endpoint.url.replace(/\/+$/, '')
    const where = new URL(base).host
    const what = path.split('?')[0] as string
    const { status, text } = await exchange(this.#endpoint, this.#fetch, {
      url: `${base}${path}`,
      what,
      method: body ? 'POST' : 'GET',
      headers: {
        accept: 'application/json',
        ...(body ? { 'content-type': 'application/cbor' } : {}),
      },
      ...(body ? { body: Buffer.from(body) } : {}),
    })
    let answer: unknown
    try {
      answer = JSON.parse(text)
    } catch {
      throw new RpcUnavailable(`${where}: ${what}: the response is not JSON`)
    }
    // A self-hosted submit API accepts with status 202.
    const isGood = status === 200 || status === 202
    if (isGood && (typeof answer !== 'object' || answer === null) && typeof answer !== 'string') {
      throw new RpcUnavailable(`${where}: ${what}: the response is not in the format of Blockfrost`)
    }
    if (isGood) return answer
    const { status_code: code, message } = (answer ?? {}) as {
      status_code?: unknown
      message?: unknown
    }
    // An error page of a proxy contains no information about the chain.
    if (code !== status)
      throw new RpcUnavailable(`${where}: ${what}: the response is not in the format of Blockfrost`)
    if (status === NOT_FOUND || REFUSED.has(status))
      throw new RpcRefused(status, String(message ?? 'refused').slice(0, 300))
    throw new RpcUnavailable(`${where}: ${what}: ${status} ${String(message ?? '').slice(0, 200)}`)
  }

  async #get<T>(path: string): Promise<T> {
    return (await this.#ask(path)) as T
  }

  /** Queries a path. Returns null if the endpoint responds that the object does not exist. */
  async #find<T>(path: string): Promise<T | null> {
    try {
      return await this.#get<T>(path)
    } catch (error) {
      if (error instanceof RpcRefused && error.rpcCode === NOT_FOUND) return null
      throw error
    }
  }

  #odd(what: string): never {
    throw new RpcUnavailable(`${this.network.code}: ${what}`)
  }

  async probe(): Promise<void> {
    const { network_magic: magic } = await this.#get<{ network_magic: number }>('/genesis')
    if (magic !== this.network.network_id) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint serves the network with magic ${String(magic)}, not ${String(this.network.network_id)}`,
      )
    }
  }

  async #latest(): Promise<Block & { height: number; slot: number }> {
    return this.#checked(await this.#get<Block>('/blocks/latest'))
  }

  #checked(block: Block): Block & { height: number; slot: number } {
    if (
      !Number.isSafeInteger(block.height) ||
      !Number.isSafeInteger(block.slot) ||
      !/^[0-9a-f]{64}$/.test(block.hash)
    ) {
      this.#odd('a block has no height, slot or hash')
    }
    return block as Block & { height: number; slot: number }
  }

  async tip(): Promise<ChainTip> {
    const { height, hash } = await this.#latest()
    return { height, hash, finalHeight: null }
  }

  async head(): Promise<EndpointHead> {
    const { height, time } = await this.#latest()
    return {
      height,
      timeMs: time !== undefined && Number.isSafeInteger(time) ? time * 1000 : null,
      lacks: null,
    }
  }

  async block(height: number): Promise<ChainBlock | null> {
    const jsonOrMissing = await this.#find<Block>(`/blocks/${height}`)
    if (!jsonOrMissing) return null
    const block = this.#checked(jsonOrMissing)
    if (block.height !== height) this.#odd('blocks returned a block of another height')
    if (!Number.isSafeInteger(block.tx_count) || block.tx_count < 0)
      this.#odd(`blocks returned ${height} without tx_count`)
    if (block.tx_count === 0 && /^[1-9]/.test(block.output ?? '')) {
      this.#odd(`blocks returned ${height} with output and without transactions`)
    }
    const transactions: { tx_hash: string; cbor: string }[] = []
    for (let page = 1; transactions.length < block.tx_count; page++) {
      // Queried by hash, because the block at the height may change in between.
      const more = await this.#find<{ tx_hash: string; cbor: string }[]>(
        `/blocks/${block.hash}/txs/cbor?count=${PAGE}&page=${page}`,
      )
      if (!Array.isArray(more) || more.length === 0)
        return this.#odd(`block ${height} contains fewer transactions than its count`)
      transactions.push(...more)
    }
    const txids = new Set(transactions.map(({ tx_hash: txid }) => txid))
    if (transactions.length !== block.tx_count || txids.size !== transactions.length) {
      this.#odd(
        `block ${height} contains ${txids.size} transactions, but its count is ${block.tx_count}`,
      )
    }
    return {
      height,
      hash: block.hash,
      parent: block.previous_block ?? '',
      txids: transactions.map(({ tx_hash: txid }) => txid),
      transfers: transactions.flatMap(({ tx_hash: txid, cbor }) => this.#transfers(txid, cbor)),
    }
  }

  #open(txid: string, cbor: unknown): ReturnType<typeof openTransaction> {
    if (
      typeof cbor !== 'string' ||
      !/^(?:[0-9a-f]{2})*$/.test(cbor.slice(0, 2)) ||
      cbor.length % 2 !== 0
    ) {
      return this.#odd('a transaction is not in hex')
    }
    try {
      const opened = openTransaction(hexToBytes(cbor))
      if (opened.id === txid) return opened
    } catch {
      // The error is reported below.
    }
    return this.#odd(`the bytes of ${txid} belong to another transaction`)
  }

  #transfers(txid: string, cbor: string): ChainTransfer[] {
    const {
      outputs,
      unreadable: [first],
    } = this.#open(txid, cbor)
    if (first) {
      const reason = `output ${first.index} ${first.reason}`
      this.#report({ network: this.network.code, kind: 'transaction', name: txid, reason })
    }
    return outputs.flatMap(({ index, address, coin, assets, scriptBytes }) => {
      const to = addressText(this.network, address)
      if (to === null || coin === 0n) return []
      const riders: UtxoTokens | null =
        assets.size > 0 || scriptBytes > 0
          ? {
              assets: Object.fromEntries(
                [...assets].map(([unit, quantity]) => [unit, quantity.toString()]),
              ),
              script_bytes: scriptBytes,
            }
          : null
      return [
        {
          txid,
          position: index,
          asset: this.network.native_asset,
          address: to,
          amount: coin,
          sender: null,
          senders: null,
          coinbase: false,
          ...(riders ? { riders } : {}),
        },
      ]
    })
  }

  /**
   * Returns the body of a transaction in hex, exactly the bytes that were hashed.
   * @throws RpcRefused if the endpoint does not return it; RpcMismatch
   */
  async transactionBody(txid: string): Promise<string> {
    const { cbor } = await this.#get<{ cbor: string }>(`/txs/${txid}/cbor`)
    try {
      return bytesToHex(this.#open(txid, cbor).body)
    } catch (error) {
      throw new RpcMismatch(reasonOf(error))
    }
  }

  /**
   * Returns all parties whose lovelace a transaction spends: from its inputs, reward withdrawals
   * and refunded deposits. If its script failed, only the collateral is spent.
   */
  async senders(txid: string): Promise<Senders> {
    const { inputs } = await this.#get<Utxos>(`/txs/${txid}/utxos`)
    const { body, isValid } = this.#open(
      txid,
      (await this.#get<{ cbor: string }>(`/txs/${txid}/cbor`)).cbor,
    )
    const spent = inputs
      .filter(({ collateral, reference }) => collateral !== isValid && reference !== true)
      .map(({ address }) => address)
    if (!isValid) return sendersOf(spent)
    return sendersOf([
      ...spent,
      ...fundingOf(body).map((account) => account && stakeAddressText(this.network, account)),
    ])
  }

  /** Returns the lovelace of an output that no transaction in a block has spent, or null. */
  async unspent(txid: string, vout: number): Promise<bigint | null> {
    const jsonOrMissing = await this.#find<Utxos>(`/txs/${txid}/utxos`)
    const output = jsonOrMissing?.outputs.find(
      (each) => each.output_index === vout && !each.collateral,
    )
    if (!output || (output.consumed_by_tx ?? null) !== null) return null
    const quantity = output.amount.find(({ unit }) => unit === 'lovelace')?.quantity
    return quantity !== undefined && /^\d+$/.test(quantity)
      ? BigInt(quantity)
      : this.#odd('an output has no lovelace')
  }

  async status(hash: string): Promise<TransactionStatus> {
    const ask = () => this.#find<Found>(`/txs/${hash}`)
    let jsonOrMissing = await ask()
    if (!jsonOrMissing) {
      if (await this.#isWaiting(hash)) return { state: 'mempool' }
      // A block may have included it between the two queries: then neither response contains it,
      // although it is on the chain.
      jsonOrMissing = await ask()
      if (!jsonOrMissing) return { state: 'absent' }
    }
    if (!Number.isSafeInteger(jsonOrMissing.block_height) || !/^\d+$/.test(jsonOrMissing.fees))
      this.#odd('a transaction has no block or fee')
    return {
      state: 'included',
      height: jsonOrMissing.block_height,
      blockHash: jsonOrMissing.block,
      succeeded: jsonOrMissing.valid_contract === true,
      fee: BigInt(jsonOrMissing.fees),
    }
  }

  /**
   * Returns whether a transaction is in the mempool. Self-hosted endpoints do not serve this path
   * and respond with "not found".
   */
  async #isWaiting(hash: string): Promise<boolean> {
    try {
      return (await this.#find(`/mempool/${hash}`)) !== null
    } catch (error) {
      if (error instanceof RpcRefused) return false
      throw error
    }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      await this.#ask('/tx/submit', hexToBytes(raw))
      return { kind: 'accepted' }
    } catch (error) {
      if (error instanceof RpcRefused && REFUSED.has(error.rpcCode))
        return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  /** Returns the protocol parameters, which change at most every five days. */
  async parameters(): Promise<Parameters> {
    return this.#parameters && this.#now() - this.#parameters.at <= PARAMETERS_FRESH_MS
      ? this.#parameters.value
      : this.#readParameters()
  }

  async #readParameters(): Promise<Parameters> {
    const jsonOrMissing = await this.#get<Record<string, unknown>>('/epochs/latest/parameters')
    const whole = (name: string): bigint => {
      const text = String(jsonOrMissing[name])
      return /^\d{1,15}$/.test(text)
        ? BigInt(text)
        : this.#odd(`the parameter ${name} is not a whole number`)
    }
    if (whole('min_fee_a') === 0n) this.#odd('the parameter min_fee_a is 0')
    const value = {
      feePerByte: whole('min_fee_a'),
      feeConstant: whole('min_fee_b'),
      coinsPerByte: whole('coins_per_utxo_size'),
      transactionBytesMax: Number(whole('max_tx_size')),
      valueBytesMax: Number(whole('max_val_size')),
    }
    this.#parameters = { value, at: this.#now() }
    return value
  }

  /**
   * Returns the fee rates in lovelace per byte. There is no fee market: the ledger's price applies
   * to every transaction.
   */
  async feeRates(): Promise<LevelRates> {
    const { feePerByte } = await this.#readParameters()
    return { low: feePerByte, medium: feePerByte, high: feePerByte }
  }

  /**
   * Returns the first slot that can no longer include a transaction that is built now. Call it
   * last.
   */
  async validUntil(): Promise<number> {
    return (await this.#latest()).slot + SLOTS_TO_LIVE
  }

  /**
   * Returns true if the transaction can provably never be included any more: a block at full depth
   * is past its last slot, and a later query to an endpoint that still has that block does not find
   * the transaction.
   */
  async isDead(hash: string, validUntil: number): Promise<boolean> {
    const { height } = await this.#latest()
    const deep = height - (this.network.confirmations ?? DEPTH) + 1
    if (deep < 1) return false
    const stable = this.#checked(await this.#get<Block>(`/blocks/${deep}`))
    if (stable.height !== deep || stable.slot < validUntil) return false
    if ((await this.status(hash)).state !== 'absent') return false
    return (await this.#find<Block>(`/blocks/${stable.hash}`))?.height === deep
  }
}
