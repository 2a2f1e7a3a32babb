import { createHash } from 'node:crypto'
import { ed25519 } from '@noble/curves/ed25519.js'
import { base58 } from '../base58.ts'
import { jsonRpcExample, socketUrl } from '../examples.ts'
import type { RpcApi } from '../http-server.ts'
import type {
  Endpoint,
  FundOrder,
  Head,
  LocalChain,
  LocalContract,
  Payment,
} from '../local-chain.ts'
import { LazyChain, type ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import type { SolanaChain } from './chain.ts'
import { paymentsOf } from './payments.ts'
import { SOLANA_TOKENS } from './tokens.ts'

/** Creates the local Solana chain with its JSON-RPC. */
export function localSolanaChains(place: ChainOptions): LocalChain[] {
  return [new LocalSolanaChain(place)]
}

class LocalSolanaChain extends LazyChain<SolanaChain> implements LocalChain {
  readonly code = 'SOL'
  readonly engine = 'litesvm'
  override readonly tokens: readonly LocalContract[] = SOLANA_TOKENS.map(
    ({ asset, mint, decimals }) => ({ asset, address: mint, decimals }),
  )

  /** The chain is imported on first use, because the Solana runtime takes 80 MB. */
  protected async open(home: string, timing: Timing): Promise<SolanaChain> {
    const { SolanaChain } = await import('./chain.ts')
    return SolanaChain.open(home, timing)
  }

  protected headOf({ head: { slot, hash } }: SolanaChain): Head {
    return { height: slot, hash }
  }

  protected waitingIn({ waiting }: SolanaChain): number {
    return waiting
  }

  protected override get finality(): string {
    return 'its finalized blocks stay'
  }

  async apiAt(below: string, _url: string, faults = this.faults): Promise<RpcApi | undefined> {
    if (below !== '') return undefined
    const chain = await this.chain()
    const [{ solanaRpc }, { solanaSocket }] = await Promise.all([
      import('./rpc.ts'),
      import('./subscriptions.ts'),
    ])
    return {
      faults,
      contentType: 'application/json',
      handle: async (body) => solanaRpc(chain, faults, body),
      socket: (push) => solanaSocket(chain, push),
    }
  }

  endpoints(url: string): Endpoint[] {
    return [
      {
        protocol: 'Solana JSON-RPC',
        url,
        websocket: socketUrl(url),
        example: jsonRpcExample(url, 'getHealth'),
      },
    ]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    return base58(ed25519.getPublicKey(secret))
  }

  /** A skipped slot has no payments. */
  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    const { head, slots } = await this.chain()
    if (height > head.slot) return undefined
    return slots.get(height)?.transactions.flatMap((each) => paymentsOf(each)) ?? []
  }

  async fund({ asset, address, amount }: FundOrder): Promise<string> {
    return (await this.chain()).fund(asset, address, amount)
  }

  async mine(blocks: number): Promise<Head> {
    return (await this.chain()).mine(blocks)
  }

  /** Any 32 bytes are a mint address, because a mint needs no key. */
  tokenAddress(asset: string): string {
    return base58(createHash('sha256').update(`local mint of ${asset}`).digest())
  }
}
