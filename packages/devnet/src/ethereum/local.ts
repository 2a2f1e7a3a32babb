import { toHex } from 'viem/utils'
import { privateKeyToAddress } from 'viem/accounts'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { Faults } from '../faults.ts'
import { tokenAddress } from '../evm/contracts.ts'
import { jsonRpcExample } from '../examples.ts'
import type { RpcApi } from '../http-server.ts'
import {
  onlyOfContract,
  type Endpoint,
  type FundOrder,
  type Head,
  type LocalChain,
  type Payment,
  type SpecialOrder,
} from '../local-chain.ts'
import { LazyChain, type ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import { EthereumChain } from './chain.ts'
import { EVM_NETWORKS, type EvmNetwork, type Token } from './networks.ts'
import { paymentsIn } from './payments.ts'
import { ethereumRpc } from './rpc.ts'

const GWEI_DECIMALS = 9

/** Creates Ethereum and the other EVM networks, with Ethereum's JSON-RPC. */
export function localEvmChains(place: ChainOptions): LocalChain[] {
  return EVM_NETWORKS.map((network) => new LocalEvmChain(place, network))
}

class LocalEvmChain extends LazyChain<EthereumChain> implements LocalChain {
  readonly code: string
  readonly engine = 'anvil'
  override readonly faults = new Faults('no-final', 'no-estimate', 'price')
  override readonly isEager: boolean
  override readonly tokens: readonly Token[]
  readonly #network: EvmNetwork

  constructor(place: ChainOptions, network: EvmNetwork) {
    super(place)
    this.#network = network
    this.code = network.code
    this.isEager = network.eager
    this.tokens = network.tokens
  }

  override get path(): string {
    return this.#network.path
  }

  /** A native coin that another network has too gets its own name here. */
  override get assets(): readonly string[] {
    return [this.#network.native, ...this.tokens.map(({ asset }) => asset)]
  }

  protected async open(home: string, timing: Timing): Promise<EthereumChain> {
    return EthereumChain.open(this.#network, home, timing)
  }

  protected headOf({ head: { height, hash } }: EthereumChain): Head {
    return { height, hash }
  }

  protected waitingIn({ pending }: EthereumChain): number {
    return pending.length
  }

  protected override facts(): Record<string, unknown> {
    return { chain_id: this.#network.chainId }
  }

  async apiAt(below: string, _url: string, faults = this.faults): Promise<RpcApi | undefined> {
    if (below !== '') return undefined
    const chain = await this.chain()
    return {
      faults,
      contentType: 'application/json',
      handle: async (body) => {
        const text = await ethereumRpc(chain, faults, body)
        return text === undefined ? undefined : { status: 200, body: text }
      },
    }
  }

  endpoints(url: string): Endpoint[] {
    return [
      { protocol: 'Ethereum JSON-RPC', url, example: jsonRpcExample(url, 'eth_blockNumber', []) },
    ]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    return privateKeyToAddress(toHex(secret))
  }

  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    return paymentsIn(await this.chain(), this.#network, height)
  }

  async fund({ asset, address, amount }: FundOrder): Promise<string> {
    return (await this.chain()).fund(asset, address, amount)
  }

  /** Kind `contract`: a contract pays native coins. */
  async special({ kind, address, amount, ...more }: SpecialOrder): Promise<{ hash: string }> {
    onlyOfContract(this.code, kind, more)
    return { hash: await (await this.chain()).payByContract(address, amount) }
  }

  async mine(blocks: number): Promise<Head> {
    return (await this.chain()).mine(blocks)
  }

  /** The blocks' transactions are always dropped. */
  override async reorg(depth: number): Promise<Head> {
    return (await this.chain()).reorg(depth)
  }

  /**
   * Sets the base fee.
   * @param rate gwei
   */
  override async congest(rate: unknown): Promise<void> {
    await (await this.chain()).congest(rate === '0' ? null : parseAmount(rate, GWEI_DECIMALS))
  }

  async drop(hash: unknown): Promise<void> {
    if (typeof hash !== 'string' || !/^0x[0-9a-f]{64}$/.test(hash)) {
      throw new RequestError(`hash ${JSON.stringify(hash)} is not a transaction's hash`)
    }
    if (!(await (await this.chain()).drop(hash as `0x${string}`)))
      throw new RequestError(`transaction ${hash} is not in the memory pool`)
  }

  tokenAddress(asset: string): string {
    return tokenAddress(asset)
  }
}
