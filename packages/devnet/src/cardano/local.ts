import { getExample } from '../examples.ts'
import type { RpcApi } from '../http-server.ts'
import type { Endpoint, FundExtra, FundOrder, Head, LocalChain, Payment } from '../local-chain.ts'
import { LazyChain, type ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import { secondsOf } from '../whole-number.ts'
import type { CardanoChain } from './chain.ts'

/**
 * Maximum number of seconds by which one command moves the slots forward; it exceeds the lifetime
 * of every transaction.
 */
const SECONDS_MAX = 10_000

/** Creates the local Cardano chain with Blockfrost's API. */
export function localCardanoChains(place: ChainOptions): LocalChain[] {
  return [new LocalCardanoChain(place)]
}

class LocalCardanoChain extends LazyChain<CardanoChain> implements LocalChain {
  readonly code = 'ADA'
  readonly engine = 'scalus'
  override readonly fundExtras: readonly FundExtra[] = ['tokens']

  /**
   * The chain is imported on first use, because the ledger's rules and the transaction library take
   * 120 MB.
   */
  protected async open(home: string, timing: Timing): Promise<CardanoChain> {
    const { CardanoChain } = await import('./chain.ts')
    return CardanoChain.open(home, timing)
  }

  protected headOf({ head: { height, hash } }: CardanoChain): Head {
    return { height, hash }
  }

  protected waitingIn({ waiting }: CardanoChain): number {
    return waiting.length
  }

  async apiAt(below: string, _url: string, faults = this.faults): Promise<RpcApi | undefined> {
    const chain = await this.chain()
    const { cardanoRpc } = await import('./rpc.ts')
    return {
      faults,
      contentType: 'application/json',
      isGetAllowed: true,
      isBinary: true,
      handle: async (body) => cardanoRpc(chain, faults, below.slice(1), body),
    }
  }

  endpoints(url: string): Endpoint[] {
    return [{ protocol: 'Blockfrost', url, example: getExample(`${url}/blocks/latest`) }]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    const { addressOfSecret } = await import('./faucet.ts')
    return addressOfSecret(secret)
  }

  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    return (await this.chain()).blocks[height]?.transactions.flatMap(({ hash, outputs }) =>
      outputs.map(({ index, address, coin }) => ({
        hash,
        index,
        asset: this.code,
        address,
        tag: null,
        amount: coin,
      })),
    )
  }

  async fund({ address, amount, tokens }: FundOrder): Promise<string> {
    return (await this.chain()).fund(address, amount, tokens)
  }

  async mine(blocks: number, { seconds }: { seconds: unknown }): Promise<Head> {
    return (await this.chain()).mine(blocks, secondsOf(seconds, SECONDS_MAX))
  }

  override async reorg(depth: number, drop: boolean): Promise<Head> {
    return (await this.chain()).reorg(depth, drop)
  }
}
