import { EvmClient, UtxoClient, type ChainClient, type EvmFeeRates, type Fetch, type Network, type Registry, type UtxoFeeRates } from '@custody/chains'
import { ApiError } from '../errors.ts'
import type { Environment } from '../environment.ts'
import type { Endpoint } from '../settings.ts'

const FEE_RATES_FRESH_MS = 10_000

/** A network that has an endpoint, with its client. */
export type Connected = { network: Network } & (
  | { family: 'utxo'; client: UtxoClient }
  | { family: 'evm'; client: EvmClient }
)

interface CachedRates { rates: UtxoFeeRates | EvmFeeRates; at: number }

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

  async utxoFeeRates(code: string): Promise<UtxoFeeRates> {
    return this.#cached(code, () => this.utxo(code).feeRates())
  }

  async evmFeeRates(code: string): Promise<EvmFeeRates> {
    return this.#cached(code, () => this.evm(code).feeRates())
  }

  ratesReadAt(code: string): number | null {
    return this.#rates.get(code)?.at ?? null
  }

  async #cached<T extends UtxoFeeRates | EvmFeeRates>(code: string, read: () => Promise<T>): Promise<T> {
    const known = this.#rates.get(code)
    if (known && this.#environment.now() - known.at < FEE_RATES_FRESH_MS) return known.rates as T
    const rates = await read()
    this.#rates.set(code, { rates, at: this.#environment.now() })
    return rates
  }
}
