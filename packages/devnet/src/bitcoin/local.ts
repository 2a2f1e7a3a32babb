import { parseAmount } from '../amount.ts'
import { postExample } from '../examples.ts'
import { Faults } from '../faults.ts'
import type { RpcApi } from '../http-server.ts'
import type { Endpoint, FundOrder, Head, LocalChain, Payment } from '../local-chain.ts'
import { LazyChain, type ChainOptions } from '../lazy-chain.ts'
import type { Timing } from '../timing.ts'
import { addressOf } from './address.ts'
import { loadCashMachine } from './cash-script.ts'
import { BitcoinChain } from './chain.ts'
import { BTC, UTXO_NETWORKS, type UtxoNetwork } from './networks.ts'
import { bitcoinRpc } from './rpc.ts'
import { paySpecial, specialKindOf } from './special-payments.ts'
import { SigningKey } from './spend.ts'

/** Creates Bitcoin and the chains derived from it, with Core's JSON-RPC. */
export function localUtxoChains(place: ChainOptions): LocalChain[] {
  return UTXO_NETWORKS.map((network) => new LocalUtxoChain(place, network))
}

class LocalUtxoChain extends LazyChain<BitcoinChain> implements LocalChain {
  readonly code: string
  readonly engine = 'own regtest ledger'
  override readonly isEager: boolean
  override readonly faults: Faults
  readonly special?: NonNullable<LocalChain['special']>
  readonly #network: UtxoNetwork

  constructor(place: ChainOptions, network: UtxoNetwork) {
    super(place)
    this.#network = network
    this.code = network.code
    this.isEager = network === BTC
    // Dogecoin never has estimates, and Bitcoin Cash always has one.
    const estimates = network.fees.targets.length > 0 ? (['no-estimate'] as const) : []
    this.faults = new Faults('no-index', 'price', ...estimates)
    const kind = specialKindOf(network)
    if (kind !== null)
      this.special = async (order) => ({ hash: paySpecial(await this.chain(), kind, order) })
  }

  protected async open(home: string, timing: Timing): Promise<BitcoinChain> {
    if (this.#network.forkId) await loadCashMachine()
    return BitcoinChain.open(home, { network: this.#network, timing })
  }

  protected headOf({ head: { height, hash } }: BitcoinChain): Head {
    return { height, hash }
  }

  protected waitingIn({ mempool, extension }: BitcoinChain): number {
    return mempool.entries.size + extension.waiting.size
  }

  protected override facts(chain: BitcoinChain | undefined): Record<string, unknown> {
    return { genesis: chain?.genesisHash ?? null }
  }

  async apiAt(below: string, _url: string, faults = this.faults): Promise<RpcApi | undefined> {
    if (below !== '') return undefined
    const chain = await this.chain()
    return {
      faults,
      contentType: 'application/json',
      handle: async (body) => bitcoinRpc(chain, faults, body),
    }
  }

  endpoints(url: string): Endpoint[] {
    return [
      {
        protocol: 'Bitcoin Core JSON-RPC',
        url,
        example: postExample(url, { id: 1, method: 'getblockcount' }),
      },
    ]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    const key = new SigningKey(Buffer.from(secret))
    return addressOf(this.#network.segwit ? key.segwitScript : key.legacyScript, this.#network)!
  }

  async paymentsIn(height: number): Promise<Payment[] | undefined> {
    return (await this.chain()).ledger.blocks[height]?.txs.flatMap(({ txid, outs }) =>
      outs.flatMap(({ value, script }, index) => {
        // An output with a token is returned without an address, because it must not be credited.
        const address = addressOf(script, this.#network)
        return address === undefined
          ? []
          : [{ hash: txid, index, asset: this.code, address, tag: null, amount: value }]
      }),
    )
  }

  async fund({ address, amount }: FundOrder): Promise<string> {
    return (await this.chain()).fund(address, amount)
  }

  async mine(blocks: number, { address }: { address: unknown }): Promise<Head> {
    return (await this.chain()).mine(blocks, address)
  }

  override async reorg(depth: number, drop: boolean): Promise<Head> {
    return (await this.chain()).reorg(depth, drop)
  }

  /**
   * Sets the fee rate below which blocks leave transactions out.
   * @param rate satoshi per vbyte
   */
  override async congest(rate: unknown): Promise<void> {
    ;(await this.chain()).congest(rate === '0' ? 0n : parseAmount(rate, 0))
  }
}
