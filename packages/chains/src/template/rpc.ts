import {
  jsonRpc,
  RpcRefused,
  RpcUnavailable,
  sendersOf,
  type BroadcastResult,
  type ChainBlock,
  type ChainClient,
  type ChainTip,
  type Fetch,
  type JsonRpc,
  type RpcEndpoint,
  type TransactionStatus,
} from '../rpc.ts'
import { checkedClient } from '../checked-client.ts'
import { ChainError, type Network } from '../types.ts'
import { SECONDS_TO_LIVE } from './build.ts'

/** Amounts and sequences are decimal strings, times are Unix seconds. */
interface Head {
  network_id: number
  height: number
  hash: string
}
interface Payment {
  id: string
  from: string
  to: string
  amount: string
}
/**
 * `transactions`: those that paid. A chain that includes failed ones too says so in each, and they
 * are left out.
 */
interface Block {
  height: number
  hash: string
  parent: string
  time: number
  transactions: Payment[]
}
interface Account {
  balance: string
  sequence: string
}
/** Without `block` it waits. */
interface Found {
  block?: { height: number; hash: string }
  fee: string
}

/** Client of the network's own protocol. An answer is never believed further than it must be. */
export class TemplateClient implements ChainClient {
  readonly network: Network
  readonly #call: JsonRpc

  constructor(network: Network, endpoint: RpcEndpoint, fetch: Fetch) {
    this.network = network
    this.#call = jsonRpc(endpoint, fetch)
    return checkedClient(this, network.code)
  }

  #amount(text: unknown): bigint {
    if (typeof text !== 'string' || !/^\d+$/.test(text)) {
      throw new RpcUnavailable(`${this.network.code}: the answer has no amount where one belongs`)
    }
    return BigInt(text)
  }

  /** Whether the endpoint serves this network: everything else relies on it. */
  async probe(): Promise<void> {
    const { network_id: id } = await this.#call<Head>('head', [])
    if (id === this.network.network_id) return
    throw new ChainError(
      'WRONG_NETWORK',
      `${this.network.code}: the endpoint serves network ${id}, not ${this.network.network_id}`,
    )
  }

  /** The chain names no block final: the registry's `confirmations` do. */
  async tip(): Promise<ChainTip> {
    const { height, hash } = await this.#call<Head>('head', [])
    return { height, hash, finalHeight: null }
  }

  async #block(height: number): Promise<Block | null> {
    const block = await this.#call<Block | null>('block', [height])
    if (block && block.height !== height)
      throw new RpcUnavailable(`${this.network.code}: another block than ${height} was returned`)
    return block
  }

  async block(height: number): Promise<ChainBlock | null> {
    const block = await this.#block(height)
    return (
      block && {
        height,
        hash: block.hash,
        parent: block.parent,
        txids: block.transactions.map(({ id }) => id),
        transfers: block.transactions.map(({ id, from, to, amount }) => ({
          txid: id,
          position: 0,
          asset: this.network.native_asset,
          address: to,
          amount: this.#amount(amount),
          sender: from,
          // All who paid: each is screened.
          senders: sendersOf([from]),
          coinbase: false,
        })),
      }
    )
  }

  async status(hash: string): Promise<TransactionStatus> {
    const found = await this.#call<Found | null>('transaction', [hash])
    if (!found) return { state: 'absent' }
    const { block, fee } = found
    return block
      ? {
          state: 'included',
          height: block.height,
          blockHash: block.hash,
          succeeded: true,
          fee: this.#amount(fee),
        }
      : { state: 'mempool' }
  }

  /**
   * An error is `unknown` or `rejected`, never the transaction's end: the same bytes may be public
   * all the same.
   */
  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      await this.#call('send', [raw])
      return { kind: 'accepted' }
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown'
      return { kind: error instanceof RpcRefused ? 'rejected' : 'unknown', reason }
    }
  }

  /** An account that was never paid is like an empty one. */
  async account(address: string): Promise<{ balance: bigint; sequence: bigint }> {
    const { balance, sequence } = await this.#call<Account>('account', [address])
    return { balance: this.#amount(balance), sequence: this.#amount(sequence) }
  }

  /** What a payment costs now, in the smallest unit. */
  async fee(): Promise<bigint> {
    return this.#amount(await this.#call<string>('fee', []))
  }

  async #timeAt(height: number): Promise<number> {
    const block = await this.#block(height)
    if (!block || !Number.isSafeInteger(block.time))
      throw new RpcUnavailable(`${this.network.code}: block ${height} is not returned`)
    return block.time
  }

  /**
   * The end of a transaction's life that is built now: by the chain's clock, never by this
   * machine's.
   */
  async validUntil(): Promise<number> {
    return (await this.#timeAt((await this.tip()).height)) + SECONDS_TO_LIVE
  }

  /**
   * True where a transaction can provably never be included any more: its end has passed in a block
   * that stands, and after that was seen, the chain does not show it. An endpoint that forgets must
   * not be asked this.
   */
  async isDead(hash: string, validUntil: number): Promise<boolean> {
    const standing = (await this.tip()).height - (this.network.confirmations ?? 1) + 1
    if (standing < 0 || (await this.#timeAt(standing)) <= validUntil) return false
    return (await this.status(hash)).state === 'absent'
  }
}
