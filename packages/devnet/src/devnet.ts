import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { BitcoinChain } from './bitcoin/chain.ts'
import { bitcoinRpc } from './bitcoin/rpc.ts'
import { createControl } from './control.ts'
import { EthereumChain } from './ethereum/chain.ts'
import { EVM_NETWORKS, type EvmNetwork } from './ethereum/networks.ts'
import { ethereumRpc } from './ethereum/rpc.ts'
import { Faults } from './faults.ts'
import { createDevnetServer, type RpcFace } from './http.ts'

export type Evm = { network: EvmNetwork; faults: Faults; chain: () => Promise<EthereumChain>; started: () => boolean }
export type Bitcoin = { code: 'BTC'; path: '/btc'; faults: Faults; chain: BitcoinChain }

/** All local chains behind one HTTP port. */
export class Devnet {
  readonly bitcoin: Bitcoin
  readonly evm: readonly Evm[]
  readonly #server: Server
  readonly #open: EthereumChain[] = []
  url = ''

  private constructor(home: string) {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    this.bitcoin = { code: 'BTC', path: '/btc', faults: new Faults(), chain: BitcoinChain.open(join(home, 'btc')) }
    this.evm = EVM_NETWORKS.map((network) => this.#evm(network, join(home, network.code.toLowerCase())))
    this.#server = createDevnetServer((path) => this.#face(path), createControl(this))
  }

  static async start(home: string, port: number): Promise<Devnet> {
    const devnet = new Devnet(home)
    try {
      await Promise.all(devnet.evm.filter(({ network }) => network.eager).map(({ chain }) => chain()))
      await new Promise<void>((resolve, reject) => {
        devnet.#server.once('error', reject)
        devnet.#server.listen(port, '127.0.0.1', resolve)
      })
    } catch (error) {
      devnet.close()
      throw error
    }
    const address = devnet.#server.address()
    devnet.url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : port}`
    return devnet
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
    for (const chain of this.#open) chain.close()
    this.bitcoin.chain.close()
  }

  #evm(network: EvmNetwork, home: string): Evm {
    let opening: Promise<EthereumChain> | undefined
    const chain = (): Promise<EthereumChain> => {
      opening ??= EthereumChain.open(network, home).then(
        (opened) => {
          this.#open.push(opened)
          return opened
        },
        (error: unknown) => {
          opening = undefined
          throw error
        },
      )
      return opening
    }
    return { network, faults: new Faults(), chain, started: () => opening !== undefined }
  }

  async #face(path: string): Promise<RpcFace | undefined> {
    if (path === this.bitcoin.path) {
      const { chain, faults } = this.bitcoin
      return { faults, contentType: 'application/json', handle: async (body) => bitcoinRpc(chain, faults, body) }
    }
    const evm = this.evm.find(({ network }) => network.path === path)
    if (!evm) return undefined
    const chain = await evm.chain()
    return {
      faults: evm.faults,
      contentType: 'application/json',
      handle: async (body) => {
        const text = await ethereumRpc(chain, evm.faults, body)
        return text === undefined ? undefined : { status: 200, body: text }
      },
    }
  }
}
