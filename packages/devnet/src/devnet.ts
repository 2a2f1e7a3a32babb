import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { AmlFaces } from './aml/faces.ts'
import { Risks } from './aml/risks.ts'
import { BitcoinChain } from './bitcoin/chain.ts'
import { loadCashMachine } from './bitcoin/cash-script.ts'
import { BTC, UTXO_NETWORKS, type UtxoNetwork } from './bitcoin/networks.ts'
import { bitcoinRpc } from './bitcoin/rpc.ts'
import type { CardanoChain } from './cardano/chain.ts'
import { createControl } from './control.ts'
import { EthereumChain } from './ethereum/chain.ts'
import { EVM_NETWORKS, type EvmNetwork } from './ethereum/networks.ts'
import { ethereumRpc } from './ethereum/rpc.ts'
import { Faults } from './faults.ts'
import { createDevnetServer, type OutsideFaces, type RpcFace } from './http.ts'
import type { SolanaChain } from './solana/chain.ts'
import { PriceFaces } from './prices/faces.ts'
import { Quotes } from './prices/quotes.ts'
import { StellarChain } from './stellar/chain.ts'
import { horizonEvents, horizonRest } from './stellar/horizon.ts'
import { stellarRpc } from './stellar/rpc.ts'
import { TronChain } from './tron/chain.ts'
import { tronRpc } from './tron/rpc.ts'
import { XrpChain } from './xrp/chain.ts'
import { xrpRpc, xrpSocket } from './xrp/rpc.ts'

export type Evm = { network: EvmNetwork; faults: Faults; chain: () => Promise<EthereumChain>; started: () => boolean }
export type Utxo = { network: UtxoNetwork; faults: Faults; chain: () => Promise<BitcoinChain>; started: () => boolean }

/** A chain of accounts with tags or memos. */
export type Tagged = { code: string; path: string; engine: string; faults: Faults; chain: () => Promise<XrpChain | StellarChain>; started: () => boolean }

export type Tron = { code: 'TRX'; path: string; faults: Faults; chain: () => Promise<TronChain>; started: () => boolean }

export type Cardano = { code: 'ADA'; path: string; faults: Faults; chain: () => Promise<CardanoChain>; started: () => boolean }

export type Solana = { code: 'SOL'; path: string; faults: Faults; chain: () => Promise<SolanaChain>; started: () => boolean }

/** Where Horizon's paths begin, below those of Stellar RPC. */
const HORIZON = '/horizon'

/** All local chains behind one HTTP port. */
export class Devnet {
  readonly utxo: readonly Utxo[]
  readonly evm: readonly Evm[]
  readonly tagged: readonly Tagged[]
  readonly tron: Tron
  readonly solana: Solana
  readonly cardano: Cardano
  readonly risks: Risks
  readonly aml: AmlFaces
  readonly quotes: Quotes
  readonly prices: PriceFaces
  readonly #server: Server
  readonly #open: { close: () => void }[] = []
  #closed = false
  url = ''

  private constructor(home: string) {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    this.utxo = UTXO_NETWORKS.map((network) => ({ network, faults: new Faults(), ...this.#lazy(() => openUtxo(network, folder(home, network.code))) }))
    this.evm = EVM_NETWORKS.map((network) => ({ network, faults: new Faults(), ...this.#lazy(() => EthereumChain.open(network, folder(home, network.code))) }))
    this.tagged = [
      { code: 'XRP', path: '/xrp', engine: 'own ledger', faults: new Faults(), ...this.#lazy(() => XrpChain.open(folder(home, 'XRP'))) },
      { code: 'XLM', path: '/xlm', engine: 'own ledger', faults: new Faults(), ...this.#lazy(() => StellarChain.open(folder(home, 'XLM'))) },
    ]
    this.tron = { code: 'TRX', path: '/trx', faults: new Faults(), ...this.#lazy(() => TronChain.open(folder(home, 'TRX'))) }
    this.solana = { code: 'SOL', path: '/sol', faults: new Faults(), ...this.#lazy(() => openSolana(folder(home, 'SOL'))) }
    this.cardano = { code: 'ADA', path: '/ada', faults: new Faults(), ...this.#lazy(() => openCardano(folder(home, 'ADA'))) }
    this.risks = Risks.open(join(home, 'aml'))
    this.#open.push(this.risks)
    this.aml = new AmlFaces(() => this.risks)
    this.quotes = Quotes.open(join(home, 'prices'))
    this.#open.push(this.quotes)
    this.prices = new PriceFaces(() => this.quotes)
    this.#server = createDevnetServer((path) => this.#face(path), createControl(this), (path) => this.#outside(path))
  }

  static async start(home: string, port: number): Promise<Devnet> {
    const devnet = new Devnet(home)
    try {
      const eager = [...devnet.evm.filter(({ network }) => network.eager), ...devnet.utxo.filter(({ network }) => network === BTC)]
      await Promise.all(eager.map(({ chain }) => chain()))
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
    this.#closed = true
    this.#server.close()
    this.#server.closeAllConnections()
    for (const chain of this.#open) chain.close()
  }

  /** A chain is opened when it is first asked for; one that could not be opened is tried again. */
  #lazy<T extends { close: () => void }>(open: () => Promise<T>): { chain: () => Promise<T>; started: () => boolean } {
    let opening: Promise<T> | undefined
    const chain = (): Promise<T> => {
      opening ??= open().then(
        (opened) => {
          // One that was still opening when the process was told to end.
          if (this.#closed) opened.close()
          else this.#open.push(opened)
          return opened
        },
        (error: unknown) => {
          opening = undefined
          throw error
        },
      )
      return opening
    }
    return { chain, started: () => opening !== undefined }
  }

  /** The outside services. */
  #outside(path: string): ReturnType<OutsideFaces> {
    const priced = PriceFaces.at(path)
    if (priced) return async (request) => this.prices.handle(priced.source, { ...request, path: priced.rest })
    const found = AmlFaces.at(path)
    return found && (async (request) => this.aml.handle(found.provider, { ...request, path: found.rest }))
  }

  async #face(path: string): Promise<RpcFace | undefined> {
    const utxo = this.utxo.find(({ network }) => network.path === path)
    if (utxo) {
      const { faults } = utxo
      const chain = await utxo.chain()
      return { faults, contentType: 'application/json', handle: async (body) => bitcoinRpc(chain, faults, body) }
    }
    const tagged = this.tagged.find(
      (each) => path === each.path || (each.code === 'XLM' && `${path}/`.startsWith(`${each.path}${HORIZON}/`))
    )
    if (tagged) {
      const { faults } = tagged
      const chain = await tagged.chain()
      if (chain instanceof XrpChain) return {
        faults, contentType: 'application/json', handle: async (body) => xrpRpc(chain, faults, body),
        socket: () => xrpSocket(chain, faults),
      }
      const horizon = tagged.path + HORIZON
      if (path !== tagged.path) {
        const [base, below] = [this.url + horizon, path.slice(horizon.length + 1)]
        return {
          faults, contentType: 'application/json', isGetAllowed: true, handle: async (body, method) => horizonRest(
            chain, faults, base, { method, path: below, body }
          ),
          events: (query, push) => horizonEvents(chain, base, below, query, push),
        }
      }
      return { faults, contentType: 'application/json', handle: async (body) => stellarRpc(chain, faults, body) }
    }
    if (path.startsWith(`${this.tron.path}/`)) {
      const { faults } = this.tron
      const chain = await this.tron.chain()
      return { faults, contentType: 'application/json', isGetAllowed: true, handle: async (body) => tronRpc(chain, faults, path.slice(this.tron.path.length + 1), body) }
    }
    if (path === this.solana.path) {
      const { faults } = this.solana
      const chain = await this.solana.chain()
      const [{ solanaRpc }, { solanaSocket }] = await Promise.all([import('./solana/rpc.ts'), import('./solana/subscriptions.ts')])
      return {
        faults, contentType: 'application/json', handle: async (body) => solanaRpc(chain, faults, body),
        socket: (push) => solanaSocket(chain, push),
      }
    }
    if (path === this.cardano.path || path.startsWith(`${this.cardano.path}/`)) {
      const { faults } = this.cardano
      const chain = await this.cardano.chain()
      const { cardanoRpc } = await import('./cardano/rpc.ts')
      return { faults, contentType: 'application/json', isGetAllowed: true, isBinary: true, handle: async (body) => cardanoRpc(chain, faults, path.slice(this.cardano.path.length + 1), body) }
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

function folder(home: string, code: string): string {
  return join(home, code.toLowerCase())
}

async function openUtxo(network: UtxoNetwork, home: string): Promise<BitcoinChain> {
  if (network.forkId) await loadCashMachine()
  return BitcoinChain.open(home, { network })
}

/** Loaded only where it is used: the Solana runtime takes 80 MB. */
async function openSolana(home: string): Promise<SolanaChain> {
  const { SolanaChain } = await import('./solana/chain.ts')
  return SolanaChain.open(home)
}

/** The same here: the ledger's rules and the library that reads transactions take 120 MB. */
async function openCardano(home: string): Promise<CardanoChain> {
  const { CardanoChain } = await import('./cardano/chain.ts')
  return CardanoChain.open(home)
}
