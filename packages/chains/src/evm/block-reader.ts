import {
  RpcRefused,
  RpcUnavailable,
  sendersOf,
  type ChainBlock,
  type ChainTransfer,
  type JsonRpc,
} from '../rpc.ts'
import { reasonOf } from '../reason.ts'
import type { ReportUnreadable } from '../unreadable.ts'
import type { Asset, Network } from '../types.ts'
import { canonical } from './address.ts'
import { bloomOf, mayTellOfTransfer, TRANSFER_TOPIC } from './bloom.ts'
import { TransferLogs } from './logs.ts'
import {
  Answer,
  checkBlock,
  checkLogs,
  isOfUnknownType,
  mayHideTransactions,
  NOT_SERVED,
  partyOf,
  payeeOf,
  foreignLogs,
  type RpcBlock,
  type RpcLog,
  type RpcReceipt,
  type RpcTransaction,
} from './rpc-types.ts'
import { withdrawalsOf } from './withdrawals.ts'

/** Number of receipts that are queried concurrently if each needs its own request. */
const RECEIPTS_AT_ONCE = 8

/** Reads blocks with the transfers of the native coin and of the registered tokens in them. */
export class EvmBlockReader {
  readonly #network: Network
  readonly #assets: readonly Asset[]
  readonly #call: JsonRpc
  readonly #logs: TransferLogs
  readonly #report: ReportUnreadable

  /** @param report is called with each transaction that cannot be read */
  constructor(network: Network, assets: readonly Asset[], call: JsonRpc, report: ReportUnreadable) {
    this.#network = network
    this.#assets = assets
    this.#call = call
    const tokens = assets.filter(({ type }) => type === 'token')
    this.#logs = new TransferLogs(
      call,
      tokens.map(({ contract_address }) => (contract_address as string).toLowerCase()),
    )
    this.#report = report
  }

  /**
   * Returns the block at `height`; null if the endpoint does not have it yet.
   * @throws RpcUnavailable if the response contradicts itself or is incomplete
   */
  async read(height: number): Promise<ChainBlock | null> {
    const block = await this.#logs.whileReading(() =>
      this.#call<RpcBlock | null>('eth_getBlockByNumber', [`0x${height.toString(16)}`, true]),
    )
    if (!block) return null
    checkBlock(this.#network.code, block, height)
    if (mayHideTransactions(block)) await this.#checkEmpty(block)
    const transfers: ChainTransfer[] = block.transactions.flatMap((each) => this.#native(each))
    transfers.push(...withdrawalsOf(this.#network.code, this.#network.native_asset, block))
    const tokens = new Map(
      this.#assets
        .filter((asset) => asset.type === 'token')
        .map((asset) => [(asset.contract_address as string).toLowerCase(), asset]),
    )
    const contracts = [...tokens.keys()]
    if (
      block.transactions.length > 0 ||
      contracts.some((contract) => mayTellOfTransfer(block.logsBloom, contract))
    ) {
      const logs = contracts.length === 0 ? [] : await this.#tokenLogs(block, contracts)
      const callers = new Map(block.transactions.map(({ hash, from }) => [hash, partyOf(from)]))
      for (const log of logs) {
        const asset = tokens.get(log.address.toLowerCase())
        if (!asset || log.topics.length !== 3 || log.data.length !== 66) continue
        const amount = BigInt(log.data)
        if (amount === 0n) continue
        const party = (at: number) => `0x${(log.topics[at] as string).slice(26)}`
        // A transferFrom has two senders: the owner of the tokens and the account that called the
        // contract.
        transfers.push(
          paid(
            {
              txid: log.transactionHash,
              position: Number(log.logIndex),
              asset: asset.asset_name,
              address: canonical(party(2)),
              amount,
            },
            party(1),
            [party(1), callers.get(log.transactionHash)],
          ),
        )
      }
    }
    return {
      height,
      hash: block.hash,
      parent: block.parentHash,
      txids: block.transactions.map((each) => each.hash),
      transfers,
    }
  }

  /**
   * Returns the native coin that a transaction moves.
   * @throws RpcUnavailable if a transaction of a known type lacks the fields; one of an unknown
   *   type is reported and left out
   */
  #native(transaction: RpcTransaction): ChainTransfer[] {
    const answer = new Answer(this.#network.code, 'eth_getBlockByNumber')
    try {
      const amount = answer.quantity(transaction.value, 'transactions.value')
      if (amount === 0n) return []
      const to = payeeOf(answer, transaction)
      const from = partyOf(transaction.from)
      return to === null
        ? []
        : [
            paid(
              {
                txid: transaction.hash,
                position: -1,
                asset: this.#network.native_asset,
                address: canonical(to),
                amount,
              },
              from,
              [from],
            ),
          ]
    } catch (error) {
      if (!(error instanceof RpcUnavailable) || !isOfUnknownType(transaction)) throw error
      const reason = `type ${String(transaction.type).slice(0, 20)}: ${reasonOf(error)}`
      this.#report({
        network: this.#network.code,
        kind: 'transaction',
        name: transaction.hash,
        reason,
      })
      return []
    }
  }

  /**
   * Checks a block that was returned without transactions.
   * @throws RpcUnavailable if the endpoint itself counts transactions in that block
   */
  async #checkEmpty({ hash }: RpcBlock): Promise<void> {
    const method = 'eth_getBlockTransactionCountByHash'
    const count = await this.#call<string | null>(method, [hash]).catch(async (error: unknown) => {
      if (!(error instanceof RpcRefused)) throw error
      if (NOT_SERVED.includes(error.rpcCode)) return '0x0'
      // The endpoint serves the method, and its answer for this block is not known.
      this.#refused(method, error)
      const receipts = await this.#call<unknown>('eth_getBlockReceipts', [hash])
      return Array.isArray(receipts) ? `0x${receipts.length.toString(16)}` : null
    })
    if (new Answer(this.#network.code, method).quantity(count, 'count') > 0n) {
      throw new RpcUnavailable(
        `${this.#network.code}: eth_getBlockByNumber returned ${hash} without its transactions`,
      )
    }
  }

  /**
   * Reads the Transfer logs of the given contracts in a block. An endpoint that has a block but not
   * yet its logs may return an empty list without an error, and the deposit would never be noticed.
   * So if a contract has no log although the block's bloom filter indicates one, all receipts of
   * the block are read.
   * @throws RpcUnavailable if the logs belong to another block, or if the receipts do not contain
   *   what the bloom filter indicates either
   */
  async #tokenLogs(block: RpcBlock, contracts: readonly string[]): Promise<RpcLog[]> {
    const { code } = this.#network
    const logs = checkLogs(code, 'eth_getLogs', block, await this.#logs.of(block))
    const isOther = logs.some(({ topics }) => topics[0] !== TRANSFER_TOPIC)
    if (isOther) new Answer(code, 'eth_getLogs').refuse('returned a log that was not requested')
    await this.#checkStrangers(block, logs)
    const telling = new Set(logs.map(({ address }) => address.toLowerCase()))
    const silent = contracts.filter(
      (contract) => !telling.has(contract) && mayTellOfTransfer(block.logsBloom, contract),
    )
    if (silent.length === 0) return logs
    const [method, receipts] = await this.#receipts(block)
    const reports = receipts.flatMap((receipt) => receipt.logs ?? [])
    const leftOut = () => {
      const bloom = bloomOf(reports)
      return silent.some((contract) => !mayTellOfTransfer(bloom, contract))
    }
    if (
      receipts.some(({ blockHash }) => blockHash !== block.hash) ||
      reports.some(({ blockHash }) => blockHash !== block.hash) ||
      leftOut()
    ) {
      throw new RpcUnavailable(
        `${code}: the receipts of ${block.hash} do not contain all logs that its bloom filter indicates`,
      )
    }
    const shown = checkLogs(code, method, block, reports).filter(
      ({ address, topics }) =>
        contracts.includes(address.toLowerCase()) && topics[0] === TRANSFER_TOPIC,
    )
    await this.#checkStrangers(block, shown)
    return shown
  }

  /**
   * Checks logs of transactions that the block does not list. They are accepted if the
   * transaction's receipt names this block: at some endpoints, Polygon's state syncs are such
   * transactions.
   * @throws RpcUnavailable
   */
  async #checkStrangers(block: RpcBlock, logs: readonly RpcLog[]): Promise<void> {
    const method = 'eth_getTransactionReceipt'
    for (const hash of foreignLogs(block, logs)) {
      const receipt = await this.#call<RpcReceipt | null>(method, [hash])
      if (receipt?.blockHash !== block.hash) {
        new Answer(this.#network.code, method).refuse(
          `does not report ${hash} in the block ${block.hash}, whose logs name it although the block does not list it`,
        )
      }
    }
  }

  #refused(method: string, error: RpcRefused): void {
    const reason = reasonOf(error)
    this.#report({ network: this.#network.code, kind: 'method', name: method, reason })
  }

  /**
   * Returns all receipts of a block, and how they were queried: one by one if the endpoint does not
   * serve them in one request.
   */
  async #receipts({
    hash,
    transactions,
  }: RpcBlock): Promise<[method: string, receipts: RpcReceipt[]]> {
    const together = 'eth_getBlockReceipts'
    try {
      const receipts = await this.#call<RpcReceipt[] | null>(together, [hash])
      if (!Array.isArray(receipts))
        throw new RpcUnavailable(`${this.#network.code}: ${together} does not return ${hash}`)
      return [together, receipts]
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      this.#refused(together, error)
    }
    const alone = 'eth_getTransactionReceipt'
    const receipts: RpcReceipt[] = []
    for (let at = 0; at < transactions.length; at += RECEIPTS_AT_ONCE) {
      receipts.push(
        ...(await Promise.all(
          transactions.slice(at, at + RECEIPTS_AT_ONCE).map(async (each) => {
            const receipt = await this.#call<RpcReceipt | null>(alone, [each.hash])
            return (
              receipt ??
              new Answer(this.#network.code, alone).refuse(
                `does not return ${each.hash} of ${hash}`,
              )
            )
          }),
        )),
      )
    }
    return [alone, receipts]
  }
}

/**
 * Creates a transfer whose senders are encoded when they are first read. Most transfers of a block
 * do not concern the platform, and computing the checksum is a third of the time of reading a
 * transfer.
 */
function paid(
  transfer: Pick<ChainTransfer, 'txid' | 'position' | 'asset' | 'address' | 'amount'>,
  from: string | undefined,
  senders: readonly (string | undefined)[],
): ChainTransfer {
  return {
    ...transfer,
    coinbase: false,
    get sender() {
      return from === undefined ? null : canonical(from)
    },
    get senders() {
      return sendersOf(senders.map((each) => each && canonical(each)))
    },
  }
}
