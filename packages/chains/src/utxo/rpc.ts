import { parseAmount } from '../amount.ts'
import { jsonRpc, RpcRefused, RpcUnavailable, type BroadcastResult, type ChainBlock, type ChainClient, type ChainTip, type Fetch, type JsonRpc, type RpcEndpoint, type TransactionStatus } from '../rpc.ts'
import { ChainError, type Network } from '../types.ts'
import { addressOf } from './address.ts'

/** Fields of Bitcoin Core's answers whose numbers are coins: read from the source text, as satoshi. */
const COIN_FIELDS = new Set(['value', 'fee', 'feerate', 'mempoolminfee', 'minrelaytxfee', 'incrementalrelayfee'])

interface CoreBlock {
  hash: string; height: number; previousblockhash?: string
  tx: { txid: string; vin: { coinbase?: string; txid?: string; vout?: number }[]; vout: { value: bigint; n: number; scriptPubKey: { hex: string } }[] }[]
}

/** Fee rates in satoshi per 1000 vbytes. */
export interface UtxoFeeRates { low: bigint; medium: bigint; high: bigint }

const TARGET_BLOCKS = { low: 24, medium: 6, high: 2 } as const
/** Core: RPC_VERIFY_ALREADY_IN_CHAIN (now RPC_VERIFY_ALREADY_IN_UTXO_SET). */
const ALREADY_IN_CHAIN = -27

/** Client of a network that speaks Bitcoin Core's JSON-RPC. */
export class UtxoClient implements ChainClient {
  readonly network: Network
  readonly #call: JsonRpc

  constructor(network: Network, endpoint: RpcEndpoint, fetch: Fetch) {
    this.network = network
    this.#call = jsonRpc(endpoint, fetch, (key, value, source) => (typeof value === 'number' && COIN_FIELDS.has(key) ? parseAmount(source ?? '', 8) : value))
  }

  async probe(): Promise<void> {
    const genesis = await this.#call<string>('getblockhash', [0])
    const expected = this.network.genesis
    if (expected !== undefined && genesis !== expected) throw new ChainError('WRONG_NETWORK', `${this.network.code}: the endpoint's genesis block is ${genesis}, not ${expected}`)
  }

  async tip(): Promise<ChainTip> {
    const { blocks, bestblockhash } = await this.#call<{ blocks: number; bestblockhash: string }>('getblockchaininfo', [])
    return { height: blocks, hash: bestblockhash, finalHeight: null }
  }

  async block(height: number): Promise<ChainBlock | null> {
    let block: CoreBlock
    try {
      block = await this.#call<CoreBlock>('getblock', [await this.#call<string>('getblockhash', [height]), 2])
    } catch (error) {
      if (error instanceof RpcRefused) return null
      throw error
    }
    if (block.height !== height) throw new RpcUnavailable(`${this.network.code}: getblock answered another height`)
    return {
      height,
      hash: block.hash,
      parent: block.previousblockhash ?? '',
      txids: block.tx.map((each) => each.txid),
      transfers: block.tx.flatMap((each) => each.vout.flatMap((output) => {
        const address = addressOf(this.network, Buffer.from(output.scriptPubKey.hex, 'hex'))
        if (address === null || output.value === 0n) return []
        return [{ txid: each.txid, position: output.n, asset: this.network.native_asset, address, amount: output.value, sender: null, coinbase: each.vin[0]?.coinbase !== undefined }]
      })),
    }
  }

  async status(hash: string): Promise<TransactionStatus> {
    let found: { blockhash?: string; confirmations?: number }
    try {
      found = await this.#call('getrawtransaction', [hash, true])
    } catch (error) {
      if (error instanceof RpcRefused) return { state: 'absent' }
      throw error
    }
    if (!found.blockhash || !found.confirmations || found.confirmations < 1) return { state: 'mempool' }
    const header = await this.#call<{ height: number; confirmations: number }>('getblockheader', [found.blockhash])
    if (header.confirmations < 1) return { state: 'mempool' }
    return { state: 'included', height: header.height, blockHash: found.blockhash, succeeded: true, fee: null }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      await this.#call('sendrawtransaction', [raw])
      return { kind: 'accepted' }
    } catch (error) {
      if (error instanceof RpcRefused) {
        if (error.rpcCode === ALREADY_IN_CHAIN || /already (in|known)|txn-already/i.test(error.message)) return { kind: 'accepted' }
        return { kind: 'rejected', reason: error.message }
      }
      return { kind: 'unknown', reason: error instanceof Error ? error.message : 'unknown' }
    }
  }

  /** Full transaction in hex. */
  async rawTransaction(txid: string): Promise<string> {
    return this.#call<string>('getrawtransaction', [txid, false])
  }

  /** Addresses that a transaction spends from. Empty where the node cannot tell. */
  async senders(txid: string): Promise<string[]> {
    const transaction = await this.#call<{ vin: { txid?: string; vout?: number }[] }>('getrawtransaction', [txid, true])
    const found = new Set<string>()
    for (const input of transaction.vin) {
      if (input.txid === undefined) continue
      const before = await this.#call<{ vout: { scriptPubKey: { hex: string } }[] }>('getrawtransaction', [input.txid, true])
      const script = before.vout[input.vout as number]?.scriptPubKey.hex
      const address = script === undefined ? null : addressOf(this.network, Buffer.from(script, 'hex'))
      if (address !== null) found.add(address)
    }
    return [...found]
  }

  /** Value of an unspent output in satoshi, counting the mempool, or null. */
  async unspent(txid: string, vout: number): Promise<bigint | null> {
    return (await this.#call<{ value: bigint } | null>('gettxout', [txid, vout, true]))?.value ?? null
  }

  /** estimatesmartfee at 24, 6 and 2 blocks, never below the network's floor. */
  async feeRates(): Promise<UtxoFeeRates> {
    const floor = BigInt(this.network.utxo?.min_fee_rate ?? 1) * 1000n
    const rate = async (blocks: number) => {
      const { feerate } = await this.#call<{ feerate?: bigint }>('estimatesmartfee', [blocks])
      return feerate === undefined || feerate < floor ? floor : feerate
    }
    const [low, medium, high] = await Promise.all([rate(TARGET_BLOCKS.low), rate(TARGET_BLOCKS.medium), rate(TARGET_BLOCKS.high)])
    return { low, medium: medium < low ? low : medium, high: high < medium ? medium : high }
  }
}
