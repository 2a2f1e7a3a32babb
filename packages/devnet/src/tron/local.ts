import { getExample } from '../examples.ts'
import { Faults } from '../faults.ts'
import type { RpcApi } from '../http-server.ts'
import {
  onlyOfContract,
  type Endpoint,
  type FundOrder,
  type Head,
  type LocalChain,
  type LocalContract,
  type Payment,
  type SpecialOrder,
} from '../local-chain.ts'
import { LazyChain, type ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import { addressOfSecret, toBase58 } from './address.ts'
import { GENESIS_ID, TRON_TOKENS, TronChain, type Block } from './chain.ts'
import { paymentsOf } from './payments.ts'
import { tronRpc } from './rpc.ts'
import { tokenAddress } from './tvm.ts'

const headOf = ({ number, id }: Block): Head => ({ height: number, hash: id })

/** Creates the local Tron chain with java-tron's HTTP API. */
export function localTronChains(place: ChainOptions): LocalChain[] {
  return [new LocalTronChain(place)]
}

class LocalTronChain extends LazyChain<TronChain> implements LocalChain {
  readonly code = 'TRX'
  readonly engine = 'own ledger, contracts in anvil'
  override readonly faults = new Faults('no-internal')
  override readonly tokens: readonly LocalContract[] = TRON_TOKENS.map(
    ({ asset, address, decimals }) => ({ asset, address: toBase58(address), decimals }),
  )

  protected async open(home: string, timing: Timing): Promise<TronChain> {
    return TronChain.open(home, timing)
  }

  protected headOf({ head }: TronChain): Head {
    return headOf(head)
  }

  protected waitingIn({ pending }: TronChain): number {
    return pending.length
  }

  protected override facts(): Record<string, unknown> {
    return { genesis: GENESIS_ID }
  }

  async apiAt(below: string, _url: string, faults = this.faults): Promise<RpcApi | undefined> {
    if (!below.startsWith('/')) return undefined
    const chain = await this.chain()
    return {
      faults,
      contentType: 'application/json',
      isGetAllowed: true,
      handle: async (body) => tronRpc(chain, faults, below.slice(1), body),
    }
  }

  endpoints(url: string): Endpoint[] {
    return [{ protocol: 'java-tron HTTP', url, example: getExample(`${url}/wallet/getnowblock`) }]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    return toBase58(addressOfSecret(secret))
  }

  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    const block = (await this.chain()).block(height)
    return block && paymentsOf(block)
  }

  async fund({ asset, address, amount }: FundOrder): Promise<string> {
    return (await this.chain()).fund(asset, address, amount)
  }

  async mine(blocks: number): Promise<Head> {
    return headOf(await (await this.chain()).mine(blocks))
  }

  override async reorg(depth: number, drop: boolean): Promise<Head> {
    return headOf(await (await this.chain()).reorg(depth, drop))
  }

  async advance(ms: number): Promise<Head & { time: number }> {
    const block = await (await this.chain()).advance(ms)
    return { ...headOf(block), time: block.time }
  }

  /** Kind `contract`: a contract pays TRX in the next block. */
  async special({ kind, address, amount, ...more }: SpecialOrder): Promise<{ hash: string }> {
    onlyOfContract(this.code, kind, more)
    return { hash: await (await this.chain()).payByContract(address, amount) }
  }

  tokenAddress(asset: string): string {
    return toBase58(tokenAddress(asset))
  }
}
