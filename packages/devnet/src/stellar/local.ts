import { ed25519 } from '@noble/curves/ed25519.js'
import { Faults } from '../faults.ts'
import type { RpcApi } from '../http-server.ts'
import { getExample, jsonRpcExample } from '../examples.ts'
import { LocalLedgers } from '../ledger-local.ts'
import {
  onlyOfContract,
  type Endpoint,
  type FundOrder,
  type LocalChain,
  type Payment,
  type SpecialOrder,
} from '../local-chain.ts'
import type { ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import type { StellarChain } from './chain.ts'
import { encodeKey } from './strkey.ts'

/** Path of Horizon, below that of Stellar RPC. */
const HORIZON = '/horizon'

/** Creates the local Stellar network with Stellar RPC and Horizon. */
export function localStellarChains(place: ChainOptions): LocalChain[] {
  return [new LocalStellarChain(place)]
}

class LocalStellarChain extends LocalLedgers<StellarChain> implements LocalChain {
  readonly code = 'XLM'
  override readonly faults = new Faults('price')

  /**
   * The chain and its protocols are imported on first use, because they load all of Stellar's XDR.
   */
  protected async open(home: string, timing: Timing): Promise<StellarChain> {
    const { StellarChain } = await import('./chain.ts')
    return StellarChain.open(home, timing)
  }

  async apiAt(below: string, url: string, faults = this.faults): Promise<RpcApi | undefined> {
    const isHorizon = below === HORIZON || below.startsWith(`${HORIZON}/`)
    if (below !== '' && !isHorizon) return undefined
    const chain = await this.chain()
    if (!isHorizon) {
      const { stellarRpc } = await import('./rpc.ts')
      return {
        faults,
        contentType: 'application/json',
        handle: async (body) => stellarRpc(chain, faults, body),
      }
    }
    const { horizonEvents, horizonRest } = await import('./horizon.ts')
    const [base, path] = [url + HORIZON, below.slice(HORIZON.length + 1)]
    return {
      faults,
      contentType: 'application/json',
      isGetAllowed: true,
      handle: async (body, method) => horizonRest(chain, faults, base, { method, path, body }),
      events: (query, push) => horizonEvents(chain, base, path, query, push),
    }
  }

  endpoints(url: string): Endpoint[] {
    const horizon = url + HORIZON
    return [
      { protocol: 'Stellar RPC', url, example: jsonRpcExample(url, 'getHealth') },
      { protocol: 'Horizon', url: horizon, example: getExample(`${horizon}/fee_stats`) },
    ]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    return encodeKey('G', Buffer.from(ed25519.getPublicKey(secret)))
  }

  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    const ledger = (await this.chain()).ledgers.at(height)
    const { paymentsOf } = await import('./payments.ts')
    return ledger && paymentsOf(ledger)
  }

  async fund({ address, amount, tag }: FundOrder): Promise<string> {
    return (await this.chain()).fund(address, amount, tag)
  }

  /** Kind `contract`: a contract pays XLM in the next ledger. */
  async special({ kind, address, amount, ...more }: SpecialOrder): Promise<{ hash: string }> {
    onlyOfContract(this.code, kind, more)
    return { hash: (await this.chain()).payByContract(address, amount) }
  }
}
