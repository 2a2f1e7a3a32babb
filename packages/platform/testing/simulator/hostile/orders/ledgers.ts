import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CardanoClient,
  EvmClient,
  jsonRpc,
  loadRegistry,
  SolanaClient,
  StellarClient,
  TronClient,
  UtxoClient,
  XrpClient,
  type Asset,
  type BroadcastResult,
  type Network,
} from '@custody/chains'
import { Devnet, FAMILIES } from '../../../../../devnet/src/devnet.ts'
import { chainsFetch } from '../../../chains/chains-fetch.ts'

const registry = loadRegistry('local')

/** A local chain on which signed transactions are executed, and its balances are read. */
export interface Ledger {
  readonly network: Network
  /** Returns the balance of an address in the smallest unit. @param ticker default: the native coin */
  balance(address: string, ticker?: string): Promise<bigint>
  /** Pays from the faucet, in coins. @param ticker default: the native coin. @returns the hash */
  fund(address: string, amount: string, ticker?: string): Promise<string>
  broadcast(raw: string): Promise<BroadcastResult>
  mine(blocks: number): Promise<void>
}

/** A client of a family, as far as the oracle uses it. */
interface Client {
  balance?(address: string, asset: Asset): Promise<bigint>
  broadcast(raw: string): Promise<BroadcastResult>
  rawTransaction?(hash: string): Promise<string>
  transactionBody?(hash: string): Promise<string>
  validUntil?(): Promise<number>
  account?(address: string): Promise<object | null>
  reference?(): ReturnType<TronClient['reference']>
  lifetime?(): ReturnType<SolanaClient['lifetime']>
}

/** Simulated Unix milliseconds of all local chains. */
export const CLOCK_MS = Date.UTC(2030, 0, 1)

/**
 * The local chains of one process. All seeds share them, because each has its own keys, and therefore
 * its own addresses.
 */
export class Ledgers {
  readonly #devnet: Devnet
  readonly #home: string
  readonly #ledgers = new Map<string, Ledger & { client: Client }>()

  private constructor(devnet: Devnet, home: string) {
    this.#devnet = devnet
    this.#home = home
  }

  static async start(): Promise<Ledgers> {
    const home = mkdtempSync(join(tmpdir(), 'hostile-ledgers-'))
    const devnet = await Devnet.start(home, 0, { now: () => CLOCK_MS, families: FAMILIES })
    return new Ledgers(devnet, home)
  }

  of(code: string): Ledger & { client: Client } {
    const existing = this.#ledgers.get(code)
    if (existing) return existing
    const network = registry.network(code) as Network
    const assetOf = (ticker = network.native_asset) => registry.asset(ticker) as Asset
    const chain = this.#devnet.chains.find((each) => each.code === code)!
    const endpoint = { url: `${this.#devnet.url}${chain.path}` }
    const fetch = chainsFetch(this.#devnet)
    const client = this.#client(network, endpoint, fetch)
    const rpc = jsonRpc(endpoint, fetch)
    const balance = async (address: string, ticker?: string): Promise<bigint> => {
      if (client.balance) return client.balance(address, assetOf(ticker))
      return network.family === 'cardano'
        ? lovelaceOf(await fetch(`${endpoint.url}/addresses/${address}/utxos`))
        : scanned(await rpc<Scan>('scantxoutset', ['start', [`addr(${address})`]]))
    }
    const ledger = {
      network,
      client,
      balance,
      fund: (address: string, amount: string, ticker = network.native_asset) =>
        chain.fund({
          asset: ticker,
          address,
          amount,
          tag: undefined,
          tokens: undefined,
          delivered: undefined,
        }),
      broadcast: (raw: string) => client.broadcast(raw),
      mine: async (blocks: number) => {
        await chain.mine(blocks, { address: undefined, seconds: undefined })
      },
    }
    this.#ledgers.set(code, ledger)
    return ledger
  }

  #client(network: Network, endpoint: { url: string }, fetch: typeof globalThis.fetch): Client {
    const assets = registry.assetsOf(network.code)
    switch (network.family) {
      case 'utxo':
        return new UtxoClient(network, endpoint, fetch, () => CLOCK_MS)
      case 'evm':
        return new EvmClient(network, assets, endpoint, fetch)
      case 'cardano':
        return new CardanoClient(network, endpoint, fetch, () => CLOCK_MS)
      case 'xrp':
        return new XrpClient(network, endpoint, fetch, () => CLOCK_MS)
      case 'tron':
        return new TronClient(network, assets, endpoint, fetch)
      case 'stellar':
        return new StellarClient(network, endpoint, fetch, () => CLOCK_MS)
      case 'solana':
        return new SolanaClient(network, assets, endpoint, fetch, () => CLOCK_MS)
      default:
        throw new Error(`no ledger for the family ${network.family}`)
    }
  }

  close(): void {
    this.#devnet.close()
    rmSync(this.#home, { recursive: true, force: true })
  }
}

interface Scan {
  unspents: { txid: string; vout: number }[]
  total_amount: number
}

/** Returns the sum of a scan in satoshi. */
const scanned = ({ total_amount }: Scan): bigint => BigInt(Math.round(total_amount * 1e8))

/** Returns the sum of an answer of Blockfrost about the unspent outputs of an address, in lovelace. */
async function lovelaceOf(answer: Response): Promise<bigint> {
  if (answer.status === 404) return 0n
  const outputs = (await answer.json()) as { amount: { unit: string; quantity: string }[] }[]
  return outputs
    .flatMap(({ amount }) => amount)
    .filter(({ unit }) => unit === 'lovelace')
    .reduce((sum, { quantity }) => sum + BigInt(quantity), 0n)
}
