import {
  jsonRpc,
  RpcRefused,
  RpcUnavailable,
  sendersOf,
  type BroadcastResult,
  type ChainBlock,
  type ChainClient,
  type ChainTip,
  type EndpointHead,
  type Fetch,
  type JsonRpc,
  type RpcEndpoint,
  type TransactionStatus,
} from '../rpc.ts'
import { checkedClient } from '../checked-client.ts'
import { ChainError, type Network } from '../types.ts'
import { SECONDS_TO_LIVE } from './build.ts'

/**
 * Response of `head`. In all responses, amounts and sequences are decimal strings, and times are
 * Unix seconds.
 */
interface Head {
  network_id: number
  height: number
  hash: string
}
/** A successful payment in a block: its transaction id, sender, receiver and amount. */
interface Payment {
  id: string
  from: string
  to: string
  amount: string
}
/**
 * Response of `block`. `transactions` contains successful payments only. On a chain that also
 * includes failed transactions, each states its result, and the client must leave out the failed
 * ones.
 */
interface Block {
  height: number
  hash: string
  parent: string
  time: number
  transactions: Payment[]
}
/** Response of `account`. */
interface Account {
  balance: string
  sequence: string
}
/** Response of `transaction`. If `block` is absent, the transaction is in the mempool. */
interface Found {
  block?: { height: number; hash: string }
  fee: string
}

/** Client of the network's own protocol. It validates every field of a response before use. */
export class TemplateClient implements ChainClient {
  readonly network: Network
  readonly #call: JsonRpc

  constructor(network: Network, endpoint: RpcEndpoint, fetch: Fetch) {
    this.network = network
    this.#call = jsonRpc(endpoint, fetch)
    return checkedClient(this, network.code)
  }

  /**
   * Reads an amount from a response.
   * @throws RpcUnavailable if it is not a decimal integer
   */
  #amount(text: unknown): bigint {
    if (typeof text !== 'string' || !/^\d+$/.test(text)) {
      throw new RpcUnavailable(
        `${this.network.code}: the response has no amount where one is required`,
      )
    }
    return BigInt(text)
  }

  /**
   * Checks that the endpoint serves this network. All other methods rely on this.
   * @throws ChainError `WRONG_NETWORK` if it serves another one
   */
  async probe(): Promise<void> {
    const { network_id: id } = await this.#call<Head>('head', [])
    if (id === this.network.network_id) return
    throw new ChainError(
      'WRONG_NETWORK',
      `${this.network.code}: the endpoint serves network ${id}, not ${this.network.network_id}`,
    )
  }

  /**
   * Returns the newest block. This chain declares no block final, so the registry's `confirmations`
   * determine finality.
   */
  async tip(): Promise<ChainTip> {
    const { height, hash } = await this.#call<Head>('head', [])
    return { height, hash, finalHeight: null }
  }

  /** Returns the newest block. This chain's blocks have no time. */
  async head(): Promise<EndpointHead> {
    return { height: (await this.tip()).height, timeMs: null, lacks: null }
  }

  /**
   * Reads a block and checks that it has the requested height; null if it does not exist yet.
   * @throws RpcUnavailable if the endpoint returns another block
   */
  async #block(height: number): Promise<Block | null> {
    const block = await this.#call<Block | null>('block', [height])
    if (block && block.height !== height)
      throw new RpcUnavailable(`${this.network.code}: another block than ${height} was returned`)
    return block
  }

  /**
   * Returns the block at a height with its transfers; null if it does not exist yet.
   * @throws RpcUnavailable if the response is malformed
   */
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
          // All senders of the payment; each of them is screened.
          senders: sendersOf([from]),
          coinbase: false,
        })),
      }
    )
  }

  /**
   * Returns the state of a transaction: `absent`, `mempool`, or `included` with its block and fee.
   * @param hash id of the transaction
   */
  async status(hash: string): Promise<TransactionStatus> {
    const result = await this.#call<Found | null>('transaction', [hash])
    if (!result) return { state: 'absent' }
    const { block, fee } = result
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
   * Broadcasts a signed transaction. After an error the result is `unknown` or `rejected`, and the
   * transaction must not be considered failed: the same bytes may already be public.
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

  /**
   * Returns the balance and next sequence of an account. An account that never received a payment
   * has the values of an empty one.
   */
  async account(address: string): Promise<{ balance: bigint; sequence: bigint }> {
    const { balance, sequence } = await this.#call<Account>('account', [address])
    return { balance: this.#amount(balance), sequence: this.#amount(sequence) }
  }

  /** Returns the current fee of a payment, in the smallest unit. */
  async fee(): Promise<bigint> {
    return this.#amount(await this.#call<string>('fee', []))
  }

  /**
   * Returns the time of a block in Unix seconds.
   * @throws RpcUnavailable if the endpoint does not return the block
   */
  async #timeAt(height: number): Promise<number> {
    const block = await this.#block(height)
    if (!block || !Number.isSafeInteger(block.time))
      throw new RpcUnavailable(`${this.network.code}: the endpoint does not return block ${height}`)
    return block.time
  }

  /**
   * Returns the end of the validity (Unix seconds) of a transaction that is built now. It is
   * computed from the chain's clock and never from this machine's.
   */
  async validUntil(): Promise<number> {
    return (await this.#timeAt((await this.tip()).height)) + SECONDS_TO_LIVE
  }

  /**
   * Returns true if a transaction can provably never be included any more: a final block is later
   * than its end of validity, and a query that follows this check does not find the transaction. An
   * endpoint that deletes old transactions must not be used for this.
   * @param validUntil Unix seconds
   */
  async isDead(hash: string, validUntil: number): Promise<boolean> {
    const standing = (await this.tip()).height - (this.network.confirmations ?? 1) + 1
    if (standing < 0 || (await this.#timeAt(standing)) <= validUntil) return false
    return (await this.status(hash)).state === 'absent'
  }
}
