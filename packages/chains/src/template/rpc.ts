import {
  jsonRpc, type BroadcastResult, type ChainBlock, type ChainClient, type ChainTip, type Fetch, type JsonRpc, type RpcEndpoint,
  type TransactionStatus,
} from '../rpc.ts'
import { ChainError, type Network } from '../types.ts'

/** Client of the network's production protocol. An answer is never believed further than it must be. */
export class TemplateClient implements ChainClient {
  readonly network: Network
  readonly call: JsonRpc

  constructor(network: Network, endpoint: RpcEndpoint, fetch: Fetch) {
    this.network = network
    this.call = jsonRpc(endpoint, fetch)
  }

  #missing(what: string): never {
    throw new ChainError('TEMPLATE', `${this.network.code}: ${what} is to be written`)
  }

  async probe(): Promise<void> {
    this.#missing('the probe')
  }

  async tip(): Promise<ChainTip> {
    return this.#missing('the tip')
  }

  async block(_height: number): Promise<ChainBlock | null> {
    return this.#missing('reading blocks')
  }

  async status(_hash: string): Promise<TransactionStatus> {
    return this.#missing('the status of transactions')
  }

  /** Errors are `unknown` or `rejected`, never the transaction's end. */
  async broadcast(_raw: string): Promise<BroadcastResult> {
    return this.#missing('broadcasting')
  }
}
