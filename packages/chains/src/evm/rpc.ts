import {
  jsonRpc, RpcRefused, RpcUnavailable, type BroadcastResult, type ChainBlock, type ChainClient, type ChainTip, sendersOf,
  type ChainTransfer, type ExpectedTransfer, type Fetch, type JsonRpc, type RpcEndpoint, type TransactionStatus,
} from '../rpc.ts'
import { reasonOf } from '../reason.ts'
import { ChainError, type Asset, type Network, type UnsignedTransaction } from '../types.ts'
import { canonical } from './address.ts'
import { bloomOf, mayTellOfTransfer, TRANSFER_TOPIC } from './bloom.ts'
import { NATIVE_GAS, transferData, type EvmFee } from './build.ts'

const BALANCE_OF = '0x70a08231'
/** Of ten blocks, the reward percentile that each level pays. */
const PERCENTILES = { low: 25, medium: 50, high: 75 } as const
const HISTORY_BLOCKS = 10
/** Head-room over estimateGas for tokens whose cost depends on state that may change. */
const GAS_HEADROOM_PERCENT = 130n
const TIP_FLOOR_WEI = 1n
/** getL1Fee(bytes) of the GasPriceOracle (OP Stack). */
const GET_L1_FEE = '0x49948e0e'
/** The price of the chain below may rise until the transaction is published; what is left over stays booked. */
const L1_HEADROOM_PERCENT = 150n
/** Where the whole price is paid, as much above the node's own suggestion. */
const LEGACY_MEDIUM_PERCENT = 110n
const LEGACY_HIGH_PERCENT = 125n
const METHOD_NOT_FOUND = -32601
/** How endpoints say that they do not serve a method, or not by a block's hash (JSON-RPC 2.0, EIP-1474). */
const NOT_SERVED: readonly number[] = [METHOD_NOT_FOUND, -32602, -32004]
const EXECUTION_REVERTED = 3

interface RpcBlock {
  number: string; hash: string; parentHash: string; logsBloom?: string
  transactions: { hash: string; from: string; to: string | null; value: string }[]
}
interface RpcReceipt {
  status: string; gasUsed: string; effectiveGasPrice: string; blockNumber: string; blockHash: string; l1Fee?: string | null;
  logs?: RpcLog[]; logsBloom?: string
}
interface RpcLog {
  address: string; topics: string[]; data: string; logIndex: string; transactionHash: string; blockHash: string; removed?: boolean
}

interface FeeHistory { baseFeePerGas?: string[]; reward?: string[][] }

/** maxFeePerGas and tip by level, in wei per gas. */
export type EvmFeeRates = Record<'low' | 'medium' | 'high', EvmFee>

/** Client of a network that speaks Ethereum's JSON-RPC. */
export class EvmClient implements ChainClient {
  readonly network: Network
  readonly #assets: readonly Asset[]
  readonly #call: JsonRpc

  constructor(network: Network, assets: readonly Asset[], endpoint: RpcEndpoint, fetch: Fetch) {
    this.network = network
    this.#assets = assets
    this.#call = jsonRpc(endpoint, fetch)
  }

  async probe(): Promise<void> {
    const chainId = Number(await this.#call<string>('eth_chainId', []))
    if (chainId !== this.network.chain_id) {
      throw new ChainError(
        'WRONG_NETWORK', `${this.network.code}: the endpoint serves chain id ${chainId}, not ${String(this.network.chain_id)}`
      )
    }
  }

  async tip(): Promise<ChainTip> {
    const [head, final] = await Promise.all([
      this.#blockBy('latest', false), this.network.confirmations === null ? this.#blockBy('finalized', false) : null,
    ])
    if (!head) throw new RpcUnavailable(`${this.network.code}: no latest block`)
    return {
      height: Number(head.number), hash: head.hash,
      finalHeight: this.network.confirmations === null ? (final ? Number(final.number) : 0) : null,
    }
  }

  async block(height: number): Promise<ChainBlock | null> {
    const block = await this.#blockBy(`0x${height.toString(16)}`, true)
    if (!block) return null
    if (Number(block.number) !== height) throw new RpcUnavailable(`${this.network.code}: eth_getBlockByNumber answered another height`)
    const transfers: ChainTransfer[] = block.transactions.flatMap((each) => (each.to !== null && BigInt(each.value) > 0n
      ? [paid({
          txid: each.hash, position: -1, asset: this.network.native_asset, address: canonical(each.to), amount: BigInt(each.value),
        }, each.from, [each.from])]
      : []))
    const tokens = new Map(
      this.#assets.filter((asset) => asset.type === 'token').map((asset) => [(asset.contract_address as string).toLowerCase(), asset])
    )
    if (tokens.size > 0 && block.transactions.length > 0) {
      const logs = await this.#tokenLogs(block, [...tokens.keys()])
      const callers = new Map(block.transactions.map(({ hash, from }) => [hash, from]))
      for (const log of logs) {
        const asset = tokens.get(log.address.toLowerCase())
        if (!asset || log.removed || log.topics.length !== 3 || log.data.length !== 66) continue
        const amount = BigInt(log.data)
        if (amount === 0n) continue
        const party = (at: number) => `0x${(log.topics[at] as string).slice(26)}`
        // Of a transferFrom both count: whose tokens they were, and who had them moved.
        transfers.push(paid({
          txid: log.transactionHash, position: Number(log.logIndex), asset: asset.asset_name, address: canonical(party(2)), amount,
        }, party(1), [party(1), callers.get(log.transactionHash)]))
      }
    }
    return { height, hash: block.hash, parent: block.parentHash, txids: block.transactions.map((each) => each.hash), transfers }
  }

  /**
   * The Transfer logs of some contracts in a block. An endpoint that knows a block and not yet its logs may answer none, without an
   * error, and nobody would ever see the deposit. So where a contract tells of nothing and the block's bloom says that it may, all
   * receipts of the block are asked for.
   * @throws RpcUnavailable where they do not tell either what the bloom says
   */
  async #tokenLogs(block: RpcBlock, contracts: readonly string[]): Promise<RpcLog[]> {
    // By block hash, not by range: logs by range can be partial at the head with no error (EIP-234).
    const logs = await this.#call<RpcLog[]>('eth_getLogs', [{ blockHash: block.hash, address: contracts, topics: [TRANSFER_TOPIC] }])
    const isOther = ({ blockHash }: { blockHash: string }) => blockHash !== block.hash
    if (logs.some((log) => !log.removed && isOther(log))) {
      throw new RpcUnavailable(`${this.network.code}: eth_getLogs answered logs of another block than ${block.hash}`)
    }
    const telling = new Set(logs.map(({ address }) => address.toLowerCase()))
    const silent = contracts.filter((contract) => !telling.has(contract) && mayTellOfTransfer(block.logsBloom, contract))
    if (silent.length === 0) return logs
    const receipts = await this.#receipts(block.hash)
    if (receipts === null) return logs
    const told = receipts.flatMap((receipt) => receipt.logs ?? [])
    const bloom = bloomOf(told)
    const leftOut = silent.find((contract) => !mayTellOfTransfer(bloom, contract))
    if (receipts.some(isOther) || told.some(isOther) || leftOut !== undefined) {
      throw new RpcUnavailable(`${this.network.code}: the receipts of ${block.hash} are not all that its bloom of logs tells of`)
    }
    return told.filter(({ address, topics }) => contracts.includes(address.toLowerCase()) && topics[0] === TRANSFER_TOPIC)
  }

  /** All receipts of a block; null where the endpoint does not serve them. */
  async #receipts(blockHash: string): Promise<RpcReceipt[] | null> {
    try {
      const receipts = await this.#call<RpcReceipt[] | null>('eth_getBlockReceipts', [blockHash])
      if (!Array.isArray(receipts)) throw new RpcUnavailable(`${this.network.code}: eth_getBlockReceipts does not know ${blockHash}`)
      return receipts
    } catch (error) {
      if (error instanceof RpcRefused && NOT_SERVED.includes(error.rpcCode)) return null
      throw error
    }
  }

  /** @throws RpcUnavailable too where a receipt has no log of the token that its bloom tells of: not paid cannot be told from not shown */
  async status(hash: string, expected?: ExpectedTransfer): Promise<TransactionStatus> {
    const receipt = await this.#call<RpcReceipt | null>('eth_getTransactionReceipt', [hash])
    if (receipt) {
      if (expected !== undefined && leavesOut(receipt, expected.asset.contract_address as string)) {
        throw new RpcUnavailable(`${this.network.code}: the receipt of ${hash} is without the logs that its bloom tells of`)
      }
      const fee = BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) + BigInt(receipt.l1Fee ?? '0x0')
      return {
        state: 'included', height: Number(receipt.blockNumber), blockHash: receipt.blockHash,
        succeeded: receipt.status === '0x1' && (expected === undefined || hasTransfer(receipt.logs ?? [], expected)), fee,
      }
    }
    return { state: (await this.#call<unknown>('eth_getTransactionByHash', [hash])) ? 'mempool' : 'absent' }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      await this.#call('eth_sendRawTransaction', [`0x${raw}`])
      return { kind: 'accepted' }
    } catch (error) {
      if (error instanceof RpcRefused) return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  /** Next nonce counting mined transactions only. */
  async nonce(address: string): Promise<bigint> {
    return BigInt(await this.#call<string>('eth_getTransactionCount', [address, 'latest']))
  }

  /** Balance in the asset's smallest unit at `latest`. */
  async balance(address: string, asset: Asset): Promise<bigint> {
    if (asset.type === 'native') return BigInt(await this.#call<string>('eth_getBalance', [address, 'latest']))
    const data = `${BALANCE_OF}${address.slice(2).toLowerCase().padStart(64, '0')}`
    return BigInt(await this.#call<string>('eth_call', [{ to: asset.contract_address, data }, 'latest']))
  }

  /** Gas limit of a transfer, with head-room where it runs code. Throws RpcRefused where it would revert. */
  async gasLimit(o: { asset: Asset; from: string; to: string; amount: bigint }): Promise<bigint> {
    const gas = await this.gasUsed(o)
    return gas === NATIVE_GAS ? gas : (gas * GAS_HEADROOM_PERCENT) / 100n
  }

  /** What a transfer is estimated to use, without head-room. Throws RpcRefused where it would revert. */
  async gasUsed(o: { asset: Asset; from: string; to: string; amount: bigint }): Promise<bigint> {
    const token = o.asset.type === 'token'
    // Without a gas price nothing is charged, so that an address without native coin can be asked for.
    const request = token
      ? { from: o.from, to: o.asset.contract_address, data: transferData(o.to, o.amount) }
      : { from: o.from, to: o.to, value: `0x${o.amount.toString(16)}` }
    const gas = BigInt(await this.#call<string>('eth_estimateGas', [request]))
    // Some tokens say false where others revert; those that answer nothing at all are asked no more.
    if (token && /^0x0{64}$/.test(await this.#call<string>('eth_call', [request, 'latest']))) {
      throw new RpcRefused(EXECUTION_REVERTED, `${o.asset.asset_name} refuses this transfer`)
    }
    return gas
  }

  /** eth_feeHistory percentiles 25, 50, 75; max = 2 × base fee + tip. Legacy gas price where there is no base fee. */
  async feeRates(): Promise<EvmFeeRates> {
    const history = this.network.legacy_gas_price ? {} : await this.#feeHistory()
    const base = history.baseFeePerGas?.at(-1)
    if (base === undefined) {
      const price = BigInt(await this.#call<string>('eth_gasPrice', []))
      const level = (percent: bigint): EvmFee => {
        const maxFeePerGas = (price * percent) / 100n
        return { maxFeePerGas, maxPriorityFeePerGas: maxFeePerGas, legacy: true }
      }
      return { low: level(100n), medium: level(LEGACY_MEDIUM_PERCENT), high: level(LEGACY_HIGH_PERCENT) }
    }
    const suggested = BigInt(await this.#call<string>('eth_maxPriorityFeePerGas', []).catch(() => '0x1'))
    const level = (column: number): EvmFee => {
      const rewards = (history.reward ?? []).map(
        (row) => BigInt(row[column] ?? '0x0')
      ).filter((reward) => reward > 0n).sort((a, b) => (a < b ? -1 : 1))
      const tip = rewards[Math.floor(rewards.length / 2)] ?? suggested
      const maxPriorityFeePerGas = tip < TIP_FLOOR_WEI ? TIP_FLOOR_WEI : tip
      return { maxFeePerGas: 2n * BigInt(base) + maxPriorityFeePerGas, maxPriorityFeePerGas }
    }
    return { low: level(0), medium: level(1), high: level(2) }
  }

  async #feeHistory(): Promise<FeeHistory> {
    try {
      return await this.#call<FeeHistory>('eth_feeHistory', [`0x${HISTORY_BLOCKS.toString(16)}`, 'latest', Object.values(PERCENTILES)])
    } catch (error) {
      // Nodes from before the base fee do not know the method.
      if (error instanceof RpcRefused && error.rpcCode === METHOD_NOT_FOUND) return {}
      throw error
    }
  }

  /**
   * What a roll-up charges beside gas for publishing a transaction, in wei; 0 elsewhere.
   * @param headroom for what must suffice later: that price moves with the chain below
   */
  async l1Fee(unsigned: UnsignedTransaction, headroom: boolean): Promise<bigint> {
    const oracle = this.network.l1_fee_oracle
    if (oracle === undefined) return 0n
    const length = unsigned.bytes.length / 2
    const data = `${GET_L1_FEE}${word(32)}${word(length)}${unsigned.bytes.padEnd(Math.ceil(length / 32) * 64, '0')}`
    return (BigInt(await this.#call<string>('eth_call', [{ to: oracle, data }, 'latest'])) * (headroom ? L1_HEADROOM_PERCENT : 100n)) / 100n
  }

  async #blockBy(tag: string, full: boolean): Promise<RpcBlock | null> {
    return this.#call<RpcBlock | null>('eth_getBlockByNumber', [tag, full])
  }
}

function word(value: number): string {
  return value.toString(16).padStart(64, '0')
}

/**
 * A transfer whose senders are spelled when they are asked for: most of a block is nobody's we know, and a checksum is a third of
 * what reading it takes.
 */
function paid(
  transfer: Pick<ChainTransfer, 'txid' | 'position' | 'asset' | 'address' | 'amount'>, from: string,
  senders: readonly (string | undefined)[],
): ChainTransfer {
  return {
    ...transfer, coinbase: false,
    get sender() { return canonical(from) },
    get senders() { return sendersOf(senders.map((each) => each && canonical(each))) },
  }
}

/** Whether a receipt has no log of a contract, and its bloom says that there is one of a transfer. */
function leavesOut({ logs = [], logsBloom }: RpcReceipt, contract: string): boolean {
  return mayTellOfTransfer(logsBloom, contract) && !logs.some(({ address }) => address.toLowerCase() === contract.toLowerCase())
}

/** Whether the token's own Transfer event says that something went from one address to the other. */
function hasTransfer(logs: readonly RpcLog[], expected: ExpectedTransfer): boolean {
  const contract = (expected.asset.contract_address as string).toLowerCase()
  const topics = [expected.from, expected.to].map((address) => address.slice(2).toLowerCase().padStart(64, '0'))
  return logs.some((log) =>
    log.address.toLowerCase() === contract && log.topics[0] === TRANSFER_TOPIC && log.topics.length === 3 && log.data.length === 66
    && log.topics[1]?.slice(2).toLowerCase() === topics[0] && log.topics[2]?.slice(2).toLowerCase() === topics[1] && BigInt(log.data) > 0n)
}
