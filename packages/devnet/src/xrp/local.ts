import { secp256k1 } from '@noble/curves/secp256k1.js'
import { Faults } from '../faults.ts'
import type { RpcApi } from '../http-server.ts'
import { postExample, socketUrl } from '../examples.ts'
import { LocalLedgers } from '../ledger-local.ts'
import type { Endpoint, FundOrder, LocalChain, Payment } from '../local-chain.ts'
import type { ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import type { XrpChain } from './chain.ts'
import { accountOf } from './codec.ts'

/** Creates the local XRP Ledger with rippled's protocol. */
export function localXrpChains(place: ChainOptions): LocalChain[] {
  return [new LocalXrpChain(place)]
}

class LocalXrpChain extends LocalLedgers<XrpChain> implements LocalChain {
  readonly code = 'XRP'
  override readonly faults = new Faults('price')

  /** The chain and its protocol are imported on first use. */
  protected async open(home: string, timing: Timing): Promise<XrpChain> {
    const { XrpChain } = await import('./chain.ts')
    return XrpChain.open(home, timing)
  }

  async apiAt(below: string, _url: string, faults = this.faults): Promise<RpcApi | undefined> {
    if (below !== '') return undefined
    const chain = await this.chain()
    const { xrpRpc, xrpSocket } = await import('./rpc.ts')
    return {
      faults,
      contentType: 'application/json',
      handle: async (body) => xrpRpc(chain, faults, body),
      socket: () => xrpSocket(chain, faults),
    }
  }

  endpoints(url: string): Endpoint[] {
    const example = postExample(url, { method: 'server_info', params: [{}] })
    return [{ protocol: 'rippled', url, websocket: socketUrl(url), example }]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    return accountOf(secp256k1.getPublicKey(secret))
  }

  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    const ledger = (await this.chain()).ledgers.at(height)
    return ledger?.transactions.flatMap(({ tx: { hash, fields }, outcome }): Payment[] => {
      const { Destination: address, DestinationTag: number } = fields as {
        Destination: string
        DestinationTag?: number
      }
      if (outcome.result !== 'tesSUCCESS' || outcome.delivered === undefined) return []
      const tag = number === undefined ? null : String(number)
      return [{ hash, index: 0, asset: this.code, address, tag, amount: outcome.delivered }]
    })
  }

  async fund({ address, amount, tag, delivered }: FundOrder): Promise<string> {
    return (await this.chain()).fund(address, amount, tag, delivered)
  }
}
