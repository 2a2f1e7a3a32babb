import { CardanoClient, EvmClient, SolanaClient, StellarClient, TronClient, UtxoClient, XrpClient, type ChainClient, type EvmFeeRates, type Fetch, type LevelRates, type Network, type Registry, type TaggedClient, type TronParameters, type UtxoFeeRates } from '@custody/chains'
import { ApiError } from '../errors.ts'
import type { Environment } from '../environment.ts'
import type { Endpoint } from '../configuration.ts'

const FEE_RATES_FRESH_MS = 10_000

/** A network that has an endpoint, with its client. */
export type Connected = { network: Network } & (
  | { family: 'utxo'; client: UtxoClient }
  | { family: 'evm'; client: EvmClient }
  | { family: 'xrp'; client: XrpClient }
  | { family: 'stellar'; client: StellarClient }
  | { family: 'tron'; client: TronClient }
  | { family: 'solana'; client: SolanaClient }
  | { family: 'cardano'; client: CardanoClient }
)

type Rates = UtxoFeeRates | EvmFeeRates | LevelRates | TronParameters
interface CachedRates { rates: Rates; at: number }

/** The clients of all configured networks, with their fee rates kept for ten seconds. */
export class Networks {
  readonly #connected = new Map<string, Connected>()
  readonly #rates = new Map<string, CachedRates>()
  readonly #environment: Environment

  constructor(registry: Registry, endpoints: Record<string, Endpoint>, environment: Environment, fetch: Fetch) {
    this.#environment = environment
    for (const network of registry.networks) {
      const endpoint = endpoints[network.code]
      if (!endpoint) continue
      if (network.family === 'utxo') this.#connected.set(network.code, { network, family: 'utxo', client: new UtxoClient(network, endpoint, fetch) })
      if (network.family === 'evm') this.#connected.set(network.code, { network, family: 'evm', client: new EvmClient(network, registry.assetsOf(network.code), endpoint, fetch) })
      if (network.family === 'xrp') this.#connected.set(network.code, { network, family: 'xrp', client: new XrpClient(network, endpoint, fetch, () => environment.now()) })
      if (network.family === 'solana') this.#connected.set(network.code, { network, family: 'solana', client: new SolanaClient(network, registry.assetsOf(network.code), endpoint, fetch, () => environment.now()) })
      if (network.family === 'cardano') this.#connected.set(network.code, { network, family: 'cardano', client: new CardanoClient(network, endpoint, fetch, () => environment.now()) })
      if (network.family === 'tron') this.#connected.set(network.code, { network, family: 'tron', client: new TronClient(network, registry.assetsOf(network.code), endpoint, fetch) })
      if (network.family === 'stellar') this.#connected.set(network.code, { network, family: 'stellar', client: new StellarClient(network, endpoint, fetch, () => environment.now()) })
    }
  }

  all(): Connected[] {
    return [...this.#connected.values()]
  }

  has(code: string): boolean {
    return this.#connected.has(code)
  }

  get(code: string): Connected {
    const found = this.#connected.get(code)
    if (!found) throw new ApiError('NETWORK_UNAVAILABLE', `network ${code} has no endpoint configured`)
    return found
  }

  client(code: string): ChainClient {
    return this.get(code).client
  }

  utxo(code: string): UtxoClient {
    const found = this.get(code)
    if (found.family !== 'utxo') throw new Error(`${code} is not a UTXO network`)
    return found.client
  }

  evm(code: string): EvmClient {
    const found = this.get(code)
    if (found.family !== 'evm') throw new Error(`${code} is not an EVM network`)
    return found.client
  }

  /** Networks whose accounts have a sequence, a reserve, and tags. */
  tagged(code: string): TaggedClient {
    const found = this.get(code)
    if (found.family !== 'xrp' && found.family !== 'stellar') throw new Error(`${code} has no tags`)
    return found.client
  }

  tron(code: string): TronClient {
    const found = this.get(code)
    if (found.family !== 'tron') throw new Error(`${code} is not a Tron network`)
    return found.client
  }

  solana(code: string): SolanaClient {
    const found = this.get(code)
    if (found.family !== 'solana') throw new Error(`${code} is not a Solana network`)
    return found.client
  }

  cardano(code: string): CardanoClient {
    const found = this.get(code)
    if (found.family !== 'cardano') throw new Error(`${code} is not a Cardano network`)
    return found.client
  }

  /** Networks whose wallets are sets of coins. */
  coins(code: string): UtxoClient | CardanoClient {
    const found = this.get(code)
    if (found.family !== 'utxo' && found.family !== 'cardano') throw new Error(`${code} has accounts, not coins`)
    return found.client
  }

  /** Lovelace per byte. */
  async cardanoFeeRates(code: string): Promise<LevelRates> {
    return this.#cached(code, () => this.cardano(code).feeRates())
  }

  async utxoFeeRates(code: string): Promise<UtxoFeeRates> {
    return this.#cached(code, () => this.utxo(code).feeRates())
  }

  async evmFeeRates(code: string): Promise<EvmFeeRates> {
    return this.#cached(code, () => this.evm(code).feeRates())
  }

  async taggedFeeRates(code: string): Promise<LevelRates> {
    return this.#cached(code, () => this.tagged(code).feeRates())
  }

  /** Millionths of a lamport per compute unit. */
  async solanaUnitPrices(code: string): Promise<LevelRates> {
    return this.#cached(code, () => this.solana(code).unitPrices())
  }

  /** Tron has one price for everybody: the chain's parameters. */
  async tronParameters(code: string): Promise<TronParameters> {
    return this.#cached(code, () => this.tron(code).parameters())
  }

  /** When the fee rates of a network were last read, milliseconds since the Unix Epoch; null: never. */
  ratesReadAt(code: string): number | null {
    return this.#rates.get(code)?.at ?? null
  }

  async #cached<T extends Rates>(code: string, read: () => Promise<T>): Promise<T> {
    const known = this.#rates.get(code)
    if (known && this.#environment.now() - known.at < FEE_RATES_FRESH_MS) return known.rates as T
    const rates = await read()
    this.#rates.set(code, { rates, at: this.#environment.now() })
    return rates
  }
}
