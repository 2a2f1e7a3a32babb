import { RpcUnavailable, sendersOf, type ChainBlock, type ChainTransfer } from '../rpc.ts'
import type { Asset, Network } from '../types.ts'
import { addressHex } from './address.ts'
import { framesOf } from './frames.ts'
import { addressIn, callerOf, transferOf } from './logs.ts'
import {
  SUCCESS,
  type Block,
  type Header,
  type Info,
  type Log,
  type Transaction,
} from './api-types.ts'

/** Contract types from which payments are read. */
const READ_TYPES = new Set(['TransferContract', 'TriggerSmartContract'])
/** Contract types that execute contracts, which may pay TRX or emit logs of tokens. */
const EXECUTING_TYPES = new Set(['TriggerSmartContract', 'CreateSmartContract'])
/** Selectors of transfer(address,uint256) and transferFrom(address,address,uint256). */
const MOVES = /^(?:a9059cbb|23b872dd)/i

/**
 * Posts a request to the node and returns its JSON response.
 * @throws RpcRefused, RpcUnavailable
 */
export type TronPost = <T>(path: string, body?: Record<string, unknown>) => Promise<T>

/** Reads blocks: the TRX and the registered tokens that their transactions move. */
export class TronBlockReader {
  readonly #network: Network
  readonly #assets: readonly Asset[]
  readonly #post: TronPost

  constructor(network: Network, assets: readonly Asset[], post: TronPost) {
    this.#network = network
    this.#assets = assets
    this.#post = post
  }

  /**
   * Returns the block at `height`; null if the node does not have it yet.
   * @throws RpcUnavailable if the response contradicts itself or is incomplete
   */
  async read(height: number): Promise<ChainBlock | null> {
    const block = await this.#post<Block>('wallet/getblockbynum', { num: height })
    if (block.blockID === undefined || !block.block_header) return null
    const header = block.block_header.raw_data
    if ((header.number ?? 0) !== height)
      throw new RpcUnavailable(
        `${this.#network.code}: getblockbynum returned a block of another height`,
      )
    const transactions = block.transactions ?? []
    this.#check(height, block.blockID, header, transactions)
    const transfers = transactions.flatMap((each) => this.#native(each))
    const tokens = new Map(
      this.#assets
        .filter((asset) => asset.type === 'token')
        .map((asset) => [addressHex(asset.contract_address as string).slice(2), asset]),
    )
    if (transactions.some(({ raw_data }) => EXECUTING_TYPES.has(raw_data.contract[0]?.type ?? '')))
      transfers.push(...(await this.#executed(height, transactions, tokens)))
    return {
      height,
      hash: block.blockID,
      parent: header.parentHash,
      txids: transactions.map(({ txID }) => txID),
      transfers,
    }
  }

  /**
   * Checks a block.
   * @throws RpcUnavailable if the block contradicts itself, or lacks the data from which its
   *   payments are read
   */
  #check(height: number, id: string, header: Header, transactions: readonly Transaction[]): void {
    const refuse = (problem: string): never => {
      throw new RpcUnavailable(`${this.#network.code}: getblockbynum returned ${problem}`)
    }
    // The first eight bytes of a block's id are its height.
    if (!/^[0-9a-f]{64}$/.test(id) || BigInt(`0x${id.slice(0, 16)}`) !== BigInt(height))
      refuse(`a blockID that is not of ${height}`)
    if (typeof header.parentHash !== 'string') refuse(`${height} without parentHash`)
    if (
      transactions.length === 0 &&
      header.txTrieRoot !== undefined &&
      !/^0*$/.test(header.txTrieRoot)
    ) {
      refuse(`${height} without its transactions`)
    }
    const ids = new Set<string>()
    for (const each of transactions) {
      if (typeof each.txID !== 'string') refuse(`${height} with a transaction without txID`)
      if (ids.has(each.txID)) refuse(`${each.txID} twice`)
      ids.add(each.txID)
      if (!Array.isArray(each.raw_data?.contract)) refuse(`${each.txID} without raw_data.contract`)
      if (typeof each.ret?.[0]?.contractRet !== 'string')
        refuse(`${each.txID} without ret.contractRet`)
      // Contracts of other types are not read.
      if (
        each.raw_data.contract.some(
          (contract) => READ_TYPES.has(contract?.type) && !contract.parameter?.value?.owner_address,
        )
      ) {
        refuse(`${each.txID} without raw_data.contract.parameter.value.owner_address`)
      }
    }
  }

  /**
   * Returns the logs of a call. If a call of a registered token moves coins and succeeded, but the
   * response contains no log, the transaction is queried individually, because an endpoint may not
   * have its logs yet.
   */
  async #logsOf(
    height: number,
    { txID, raw_data }: Transaction,
    { log = [] }: Info,
    tokens: ReadonlyMap<string, Asset>,
  ): Promise<Log[]> {
    const { contract_address: contract, data } = raw_data.contract[0]?.parameter?.value ?? {}
    const moves =
      typeof contract === 'string' &&
      tokens.has(contract.slice(2).toLowerCase()) &&
      MOVES.test(data ?? '')
    if (log.length > 0 || !moves) return log
    const alone = await this.#post<Info>('wallet/gettransactioninfobyid', { value: txID })
    if (alone.id !== txID || alone.blockNumber !== height) {
      throw new RpcUnavailable(
        `${this.#network.code}: gettransactioninfobyid does not report ${txID} in the block at ${height}`,
      )
    }
    return alone.log ?? []
  }

  #native({ txID: txid, ret, raw_data }: Transaction): ChainTransfer[] {
    const [contract] = raw_data.contract
    if (contract?.type !== 'TransferContract' || ret?.[0]?.contractRet !== SUCCESS) return []
    const { owner_address: owner, to_address: to, amount } = contract.parameter?.value ?? {}
    if (owner === undefined || to === undefined || amount === undefined || BigInt(amount) <= 0n)
      return []
    const sender = addressIn(owner)
    return [
      {
        txid,
        position: -1,
        asset: this.#network.native_asset,
        address: addressIn(to),
        amount: BigInt(amount),
        sender,
        senders: sendersOf([sender]),
        coinbase: false,
      },
    ]
  }

  /**
   * Reads by height what contracts did: logs of tokens, and TRX that contracts paid. A response that
   * does not cover the same transactions belongs to another branch, or is incomplete.
   */
  async #executed(
    height: number,
    transactions: readonly Transaction[],
    tokens: ReadonlyMap<string, Asset>,
  ): Promise<ChainTransfer[]> {
    const infos = await this.#post<Info[]>('wallet/gettransactioninfobyblocknum', { num: height })
    const existing = new Map((Array.isArray(infos) ? infos : []).map((info) => [info.id, info]))
    const matches: ChainTransfer[] = []
    for (const each of transactions) {
      const { txID, ret, raw_data } = each
      const info = existing.get(txID)
      if (!info || info.blockNumber !== height) {
        throw new RpcUnavailable(
          `${this.#network.code}: gettransactioninfobyblocknum did not return the block at ${height}`,
        )
      }
      if (ret?.[0]?.contractRet !== SUCCESS || info.result === 'FAILED') continue
      const owner = raw_data.contract[0]?.parameter?.value?.owner_address
      const caller = callerOf(owner)
      matches.push(
        ...framesOf(this.#network.native_asset, {
          txid: txID,
          owner,
          internal: info.internal_transactions,
        }),
      )
      const logs = await this.#logsOf(height, each, info, tokens)
      matches.push(
        ...logs.flatMap((log, position): ChainTransfer[] => {
          if (typeof log.address !== 'string') {
            throw new RpcUnavailable(
              `${this.#network.code}: gettransactioninfobyblocknum returned a log of ${txID} without address`,
            )
          }
          const asset = tokens.get(log.address.toLowerCase())
          const moved = asset && transferOf(log)
          if (!moved) return []
          const { to: address, amount, from: sender } = moved
          return [
            {
              txid: txID,
              position,
              asset: asset.asset_name,
              address,
              amount,
              sender,
              senders: sendersOf([sender, caller]),
              coinbase: false,
            },
          ]
        }),
      )
    }
    return matches
  }
}
