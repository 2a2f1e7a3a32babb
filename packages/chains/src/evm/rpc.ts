import {
  checkCount,
  jsonRpc,
  RpcRefused,
  RpcReverted,
  RpcUnavailable,
  type BroadcastResult,
  type ChainBlock,
  type ChainClient,
  type ChainTip,
  type EndpointHead,
  type ExpectedTransfer,
  type Fetch,
  type JsonRpc,
  type RpcEndpoint,
  type TransactionStatus,
} from '../rpc.ts'
import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { ignoreUnreadable, type ReportUnreadable } from '../unreadable.ts'
import { ChainError, type Asset, type Network, type UnsignedTransaction } from '../types.ts'
import { EvmBalances } from './balances.ts'
import { EvmBlockReader } from './block-reader.ts'
import { isBloom, mayTellOfTransfer, TRANSFER_TOPIC } from './bloom.ts'
import { transferData } from './build.ts'
import { FeeMarket, type EvmFeeRates } from './fee-rates.ts'
import { limitOf } from './gas.ts'
import { operatorFeeByFork, operatorFeeCall, operatorFeeTerms } from './operator-fee.ts'
import {
  Answer,
  checkBlock,
  positive,
  type RpcBlock,
  type RpcLog,
  type RpcReceipt,
  type RpcTransaction,
} from './rpc-types.ts'

const BALANCE_OF = '0x70a08231'
/** getL1Fee(bytes) of the GasPriceOracle (OP Stack). */
const GET_L1_FEE = '0x49948e0e'
/**
 * Reserved data fee in percent of the current one, because the parent chain's price may rise until
 * the transaction is published. The unused part stays reserved.
 */
const L1_HEADROOM_PERCENT = 150n
const EXECUTION_REVERTED = 3
/** Error text of geth and others before they know a final block. */
const NOT_FINAL_YET = /final(?:ized)? block not found|unknown block/i
/**
 * Error text by which nodes report that a call was executed and failed, if they do not use the code
 * 3.
 */
const REVERTED = /execution reverted/i
const FAILED = new RegExp(
  '\\b(?:revert(?:ed)?|out of gas|gas required exceeds|invalid opcode|bad instruction|invalid jump destination|stack (?:under|over)flow' +
    '|insufficient (?:funds|balance)|always failing)\\b',
  'i',
)
/** Errors that nodes report about themselves, whatever text surrounds them. */
const TROUBLE =
  /header not found|missing trie node|timed? ?out|too many requests|rate limit|not available|pruned|quota|credits/i

/** Client of a network that serves Ethereum's JSON-RPC. */
export class EvmClient implements ChainClient {
  readonly network: Network
  readonly #call: JsonRpc
  readonly #blocks: EvmBlockReader
  readonly #market: FeeMarket
  readonly #balances: EvmBalances

  /** @param report is called with each transaction that cannot be read */
  constructor(
    network: Network,
    assets: readonly Asset[],
    endpoint: RpcEndpoint,
    fetch: Fetch,
    {
      report = ignoreUnreadable,
      now = Date.now,
    }: { report?: ReportUnreadable; now?: () => number } = {},
  ) {
    this.network = network
    this.#call = jsonRpc(endpoint, fetch)
    this.#blocks = new EvmBlockReader(network, assets, this.#call, report)
    this.#market = new FeeMarket(network, endpoint.min_tip, this.#call, now, report)
    this.#balances = new EvmBalances(network, this.#call, report, now)
    return checkedClient(this, network.code)
  }

  async probe(): Promise<void> {
    const chainId = Number(await this.#call<string>('eth_chainId', []))
    if (chainId !== this.network.chain_id) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint serves chain id ${chainId}, not ${String(this.network.chain_id)}`,
      )
    }
  }

  async tip(): Promise<ChainTip> {
    const [head, final] = await Promise.all([
      this.#blockBy('latest', false),
      this.network.confirmations === null ? this.#finalBlock() : null,
    ])
    if (!head)
      throw new RpcUnavailable(`${this.network.code}: the endpoint returned no latest block`)
    checkBlock(this.network.code, head, null)
    if (final) checkBlock(this.network.code, final, null)
    return {
      height: Number(head.number),
      hash: head.hash,
      finalHeight: this.network.confirmations === null ? (final ? Number(final.number) : 0) : null,
    }
  }

  /**
   * Returns the newest final block.
   * @throws RpcUnavailable if the node has none yet: geth, until the consensus layer names one after
   *   a start
   */
  async #finalBlock(): Promise<RpcBlock | null> {
    try {
      return await this.#blockBy('finalized', false)
    } catch (error) {
      if (!(error instanceof RpcRefused) || !NOT_FINAL_YET.test(error.message)) throw error
      throw new RpcUnavailable(
        `${this.network.code}: the endpoint has no final block yet (${error.message}): it has just started, or is syncing`,
      )
    }
  }

  async head(): Promise<EndpointHead> {
    const head = await this.#blockBy('latest', false)
    if (!head)
      throw new RpcUnavailable(`${this.network.code}: the endpoint returned no latest block`)
    checkBlock(this.network.code, head, null)
    const { number, timestamp } = head
    const isTime = typeof timestamp === 'string' && /^0x[0-9a-f]{1,12}$/i.test(timestamp)
    return { height: Number(number), timeMs: isTime ? Number(timestamp) * 1000 : null, lacks: null }
  }

  async block(height: number): Promise<ChainBlock | null> {
    return await this.#blocks.read(height)
  }

  /**
   * @param wants if `fee` is false, the fee is not read and is null
   * @throws RpcUnavailable also if a receipt lacks the log that its bloom filter indicates for the
   *   token: a missing payment cannot be distinguished from a missing log
   */
  async status(
    hash: string,
    expected?: ExpectedTransfer,
    wants: { fee: boolean } = { fee: true },
  ): Promise<TransactionStatus> {
    const receipt = await this.#call<RpcReceipt | null>('eth_getTransactionReceipt', [hash])
    if (receipt) {
      const answer = new Answer(this.network.code, 'eth_getTransactionReceipt')
      if (
        typeof receipt.transactionHash === 'string' &&
        receipt.transactionHash.toLowerCase() !== hash.toLowerCase()
      ) {
        answer.refuse(`returned the receipt of another transaction than ${hash}`)
      }
      if (expected !== undefined && leavesOut(receipt, expected.asset.contract_address as string)) {
        throw new RpcUnavailable(
          `${this.network.code}: the receipt of ${hash} has no logs, although its bloom filter indicates some`,
        )
      }
      const status = answer.quantity(receipt.status, 'status')
      return {
        state: 'included',
        height: Number(answer.quantity(receipt.blockNumber, 'blockNumber')),
        blockHash: answer.hash(receipt.blockHash, 'blockHash'),
        succeeded:
          status === 1n && (expected === undefined || hasTransfer(receipt.logs ?? [], expected)),
        fee: wants.fee ? await this.#fee(hash, receipt) : null,
      }
    }
    return {
      state: (await this.#call<unknown>('eth_getTransactionByHash', [hash])) ? 'mempool' : 'absent',
    }
  }

  async #fee(hash: string, receipt: RpcReceipt): Promise<bigint> {
    const answer = new Answer(this.network.code, 'eth_getTransactionReceipt')
    const l1 =
      receipt.l1Fee === undefined || receipt.l1Fee === null
        ? 0n
        : answer.quantity(receipt.l1Fee, 'l1Fee')
    const gas = answer.quantity(receipt.gasUsed, 'gasUsed')
    return (
      gas * (await this.#gasPrice(hash, receipt)) +
      l1 +
      (await this.#chargedByOperator(answer, receipt, gas))
    )
  }

  /**
   * Returns the operator fee that an OP Stack network charged. The formula changes with forks, so
   * the network's own contract is called at the receipt's block, which has that block's fork and
   * parameters. If the node has pruned that state, the fork's formula is used.
   */
  async #chargedByOperator(answer: Answer, receipt: RpcReceipt, gas: bigint): Promise<bigint> {
    const terms = operatorFeeTerms(answer, receipt)
    if (terms === null) return 0n
    const reported = await this.#operatorFeeOf(gas, receipt.blockNumber).catch((error: unknown) => {
      if (error instanceof RpcUnavailable || error instanceof RpcRefused) return null
      throw error
    })
    return reported ?? operatorFeeByFork(receipt, terms, gas)
  }

  /**
   * Returns the operator fee for an amount of gas according to the oracle; null if the oracle does
   * not exist or predates Isthmus.
   */
  async #operatorFeeOf(gas: bigint, block: string): Promise<bigint | null> {
    const oracle = this.network.l1_fee_oracle
    if (oracle === undefined) return null
    const answered = await this.#simulate('eth_call', [
      { to: oracle, data: operatorFeeCall(gas) },
      block,
    ]).catch((error: unknown) => {
      if (error instanceof RpcReverted) return '0x'
      throw error
    })
    return answered === '0x'
      ? null
      : new Answer(this.network.code, 'eth_call').quantity(answered, 'operator fee')
  }

  async limits(): Promise<string[]> {
    const matches: string[] = []
    const block = await this.#blockBy('latest', true)
    if (!block) return matches
    checkBlock(this.network.code, block, Number(block.number))
    if (!isBloom(block.logsBloom))
      matches.push('eth_getBlockByNumber returns no logsBloom: missing logs are not detected')
    const [first] = block.transactions
    if (first) {
      const receipt = await this.#call<RpcReceipt | null>('eth_getTransactionReceipt', [first.hash])
      if (receipt && positive(receipt.effectiveGasPrice) === null) {
        matches.push(
          'eth_getTransactionReceipt returns no effectiveGasPrice: fees are read from the transaction',
        )
      }
    }
    const isServed = await this.#call('eth_getBlockReceipts', [block.hash]).then(
      () => true,
      (error: unknown) => {
        if (error instanceof RpcRefused) return false
        throw error
      },
    )
    if (!isServed) matches.push('eth_getBlockReceipts is not served: receipts are read one by one')
    return matches
  }

  /**
   * Returns the price per gas that a transaction paid, in wei. Harmony, Celo and some endpoints of
   * other networks omit `effectiveGasPrice` from receipts, or return null or 0. Then the price is
   * the included transaction's `gasPrice`, or follows from the block's base fee (EIP-1559).
   */
  async #gasPrice(hash: string, { effectiveGasPrice, blockHash }: RpcReceipt): Promise<bigint> {
    const paid = positive(effectiveGasPrice)
    if (paid !== null) return paid
    const method = 'eth_getTransactionByHash'
    const answer = new Answer(this.network.code, method)
    const transaction = await this.#call<RpcTransaction | null>(method, [hash])
    if (!transaction)
      return answer.refuse(`does not return ${hash}, whose receipt has no effectiveGasPrice`)
    const price = positive(transaction.gasPrice)
    if (price !== null) return price
    const most = positive(transaction.maxFeePerGas)
    // A transaction that has only a gas price, which is zero, paid nothing.
    if (most === null) return answer.quantity(transaction.gasPrice, 'gasPrice')
    const block = await this.#call<RpcBlock | null>('eth_getBlockByHash', [blockHash, false])
    const base = new Answer(this.network.code, 'eth_getBlockByHash').quantity(
      block?.baseFeePerGas,
      'baseFeePerGas',
    )
    const requestedAt = base + (positive(transaction.maxPriorityFeePerGas) ?? 0n)
    return requestedAt < most ? requestedAt : most
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      await this.#call('eth_sendRawTransaction', [`0x${raw}`])
      return { kind: 'accepted' }
    } catch (error) {
      if (!(error instanceof RpcRefused)) return { kind: 'unknown', reason: reasonOf(error) }
      this.#market.refused(error.message)
      return { kind: 'rejected', reason: error.message }
    }
  }

  /** Returns the next nonce, counting mined transactions only. */
  async nonce(address: string): Promise<bigint> {
    return BigInt(await this.#call<string>('eth_getTransactionCount', [address, 'latest']))
  }

  /** Returns the balance at `latest` in the asset's smallest unit. */
  async balance(address: string, asset: Asset): Promise<bigint> {
    if (asset.type === 'native')
      return BigInt(await this.#call<string>('eth_getBalance', [address, 'latest']))
    const data = `${BALANCE_OF}${address.slice(2).toLowerCase().padStart(64, '0')}`
    return BigInt(
      await this.#call<string>('eth_call', [{ to: asset.contract_address, data }, 'latest']),
    )
  }

  async balances(addresses: readonly string[], asset: Asset, height?: number): Promise<bigint[]> {
    checkCount(addresses)
    return this.#balances.read(addresses, asset, height)
  }

  /**
   * Simulates a call at the endpoint.
   * @throws RpcReverted if it failed there; RpcUnavailable for any other error
   */
  async #simulate(method: 'eth_estimateGas' | 'eth_call', params: unknown[]): Promise<string> {
    try {
      return await this.#call<string>(method, params)
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      const { rpcCode, message } = error
      const isProven =
        rpcCode === EXECUTION_REVERTED ||
        REVERTED.test(message) ||
        (FAILED.test(message) && !TROUBLE.test(message))
      if (isProven) throw new RpcReverted(rpcCode, message)
      throw new RpcUnavailable(`${this.network.code}: ${method}: ${message}`)
    }
  }

  /**
   * Returns the gas limit of a transfer, with a margin if its cost may change.
   * @throws RpcReverted if it would revert
   */
  async gasLimit(o: { asset: Asset; from: string; to: string; amount: bigint }): Promise<bigint> {
    return limitOf(await this.gasUsed(o))
  }

  /**
   * Returns the estimated gas of a transfer, without a margin.
   * @throws RpcReverted if it would revert
   */
  async gasUsed(o: { asset: Asset; from: string; to: string; amount: bigint }): Promise<bigint> {
    const token = o.asset.type === 'token'
    // Without a gas price nothing is charged, so the estimate also works for an address without
    // native coin.
    const request = token
      ? { from: o.from, to: o.asset.contract_address, data: transferData(o.to, o.amount) }
      : { from: o.from, to: o.to, value: `0x${o.amount.toString(16)}` }
    const gas = BigInt(await this.#simulate('eth_estimateGas', [request]))
    // Some tokens return false where others revert. Tokens that return nothing are accepted without
    // a further check.
    if (token && /^0x0{64}$/.test(await this.#simulate('eth_call', [request, 'latest']))) {
      throw new RpcReverted(EXECUTION_REVERTED, `${o.asset.asset_name} rejects this transfer`)
    }
    return gas
  }

  /** See {@link FeeMarket.rates}. */
  async feeRates(): Promise<EvmFeeRates> {
    return this.#market.rates()
  }

  /**
   * Returns the fee in wei that a roll-up charges for publishing a transaction, in addition to gas;
   * 0 on other networks.
   * @param headroom adds a margin for a later submission, because the price follows the parent
   *   chain
   */
  async l1Fee(unsigned: UnsignedTransaction, headroom: boolean): Promise<bigint> {
    const oracle = this.network.l1_fee_oracle
    if (oracle === undefined) return 0n
    const length = unsigned.bytes.length / 2
    const data = `${GET_L1_FEE}${word(32)}${word(length)}${unsigned.bytes.padEnd(Math.ceil(length / 32) * 64, '0')}`
    return (
      (BigInt(await this.#call<string>('eth_call', [{ to: oracle, data }, 'latest'])) *
        (headroom ? L1_HEADROOM_PERCENT : 100n)) /
      100n
    )
  }

  /**
   * Returns the maximum operator fee in wei of an OP Stack network for a gas limit; 0 on other
   * networks.
   * @param headroom adds a margin for a later submission, because the operator may change the price
   */
  async operatorFee(gas: bigint, headroom: boolean): Promise<bigint> {
    return (
      (((await this.#operatorFeeOf(gas, 'latest')) ?? 0n) *
        (headroom ? L1_HEADROOM_PERCENT : 100n)) /
      100n
    )
  }

  async #blockBy(tag: string, full: boolean): Promise<RpcBlock | null> {
    return this.#call<RpcBlock | null>('eth_getBlockByNumber', [tag, full])
  }
}

function word(value: number): string {
  return value.toString(16).padStart(64, '0')
}

/**
 * Returns whether a receipt has no log of a contract although its bloom filter indicates a
 * transfer.
 */
function leavesOut({ logs = [], logsBloom }: RpcReceipt, contract: string): boolean {
  return (
    mayTellOfTransfer(logsBloom, contract) &&
    !logs.some(({ address }) => address.toLowerCase() === contract.toLowerCase())
  )
}

/**
 * Returns whether the token's own Transfer event reports the expected transfer from one address to
 * the other.
 */
function hasTransfer(logs: readonly RpcLog[], expected: ExpectedTransfer): boolean {
  const contract = (expected.asset.contract_address as string).toLowerCase()
  const topics = [expected.from, expected.to].map((address) =>
    address.slice(2).toLowerCase().padStart(64, '0'),
  )
  return logs.some(
    (log) =>
      log.address.toLowerCase() === contract &&
      log.topics[0] === TRANSFER_TOPIC &&
      log.topics.length === 3 &&
      log.data.length === 66 &&
      log.topics[1]?.slice(2).toLowerCase() === topics[0] &&
      log.topics[2]?.slice(2).toLowerCase() === topics[1] &&
      BigInt(log.data) > 0n,
  )
}
