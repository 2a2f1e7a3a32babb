import { randomInt } from 'node:crypto'
import { bytesToHex } from '@noble/hashes/utils.js'
import {
  exchange,
  parseWithSource,
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
  type RpcEndpoint,
  type TransactionStatus,
} from '../rpc.ts'
import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { ChainError, type Asset, type Network, type TronResource } from '../types.ts'
import { addressHex } from './address.ts'
import { TronBlockReader } from './block-reader.ts'
import { LIFE_MS, refBlock, transferData, type TronReference } from './build.ts'
import { hasTransfer } from './logs.ts'
import {
  SUCCESS,
  type Account,
  type Block,
  type ConstantCall,
  type Info,
  type Int,
  type Resources,
} from './api-types.ts'

/** Range in milliseconds of the timestamps of transactions that refer to one block. */
const TIMESTAMP_SPREAD_MS = 86_400_000
/** Broadcast errors that concern the node and not the transaction. */
const NODE_TROUBLE = new Set([
  'SERVER_BUSY',
  'NO_CONNECTION',
  'NOT_ENOUGH_EFFECTIVE_CONNECTION',
  'BLOCK_UNSOLIDIFIED',
  'OTHER_ERROR',
])
/** Errors by which a node reports that it aborted a call because of its own time limit. */
const OUT_OF_TIME = /out.?of.?time|timeout|time out/i
const RESOURCE_NUMBERS: Record<TronResource, number> = { BANDWIDTH: 0, ENERGY: 1 }

/** Parameters of the chain that determine costs, in sun, points and days. */
export interface TronParameters {
  energySun: bigint
  bandwidthSun: bigint
  createAccountSun: bigint
  createAccountFeeSun: bigint
  unfreezeDelayDays: number
  maxFeeLimit: bigint
}

export interface TronAccount {
  balance: bigint
  staked: Record<TronResource, bigint>
  /** Unstaked amounts that wait for the end of the delay (Unix milliseconds). */
  unfreezing: { resource: TronResource; amount: bigint; expires: number }[]
  /** Resources that can be spent now, staked and free bandwidth together. */
  energy: bigint
  bandwidth: bigint
}

export interface TronResources {
  energyLeft: bigint
  stakedBandwidthLeft: bigint
  freeBandwidthLeft: bigint
  /** Used part of the staked resource. */
  energyUsed: bigint
  bandwidthUsed: bigint
  /** Points per day for 1 TRX staked, times 10^6. */
  energyPerMillionTrx: bigint
  bandwidthPerMillionTrx: bigint
}

/** Client of a Tron node over its HTTP API. */
export class TronClient implements ChainClient {
  readonly network: Network
  readonly #blocks: TronBlockReader
  readonly #endpoint: RpcEndpoint
  readonly #fetch: Fetch
  readonly #below: (end: number) => number

  /** @param below returns a random integer below its argument */
  constructor(
    network: Network,
    assets: readonly Asset[],
    endpoint: RpcEndpoint,
    fetch: Fetch,
    below: (end: number) => number = (end) => randomInt(end),
  ) {
    this.network = network
    this.#blocks = new TronBlockReader(network, assets, (path, body) => this.#post(path, body))
    this.#endpoint = endpoint
    this.#fetch = fetch
    this.#below = below
    return checkedClient(this, network.code)
  }

  async #post<T>(path: string, body: Record<string, unknown> = {}): Promise<T> {
    const base = this.#endpoint.url.replace(/\/+$/, '')
    const where = new URL(base).host
    const { status, text } = await exchange(this.#endpoint, this.#fetch, {
      url: `${base}/${path}`,
      what: path,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    let answer: unknown
    try {
      answer = parseWithSource(text, (_key, value, { source }) =>
        typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '')
          ? BigInt(source as string)
          : value,
      )
    } catch {
      throw new RpcUnavailable(`${where}: ${path}: the response is not JSON`)
    }
    const isGood = status >= 200 && status < 300
    if (!isGood || typeof answer !== 'object' || answer === null)
      throw new RpcUnavailable(
        `${where}: ${path}: the response is not in the format of a Tron node`,
      )
    const { Error: refusal } = answer as { Error?: unknown }
    if (refusal !== undefined) throw new RpcRefused(0, String(refusal).slice(0, 300))
    return answer as T
  }

  async #header(
    path: string,
    body?: Record<string, unknown>,
  ): Promise<{ height: number; hash: string; time: number } | null> {
    const block = await this.#post<Block>(path, body)
    if (block.blockID === undefined || !block.block_header) return null
    const { number, timestamp } = block.block_header.raw_data
    return { height: number ?? 0, hash: block.blockID, time: timestamp ?? 0 }
  }

  async #now(
    side: 'wallet' | 'walletsolidity',
  ): Promise<{ height: number; hash: string; time: number }> {
    const block = await this.#header(`${side}/getnowblock`)
    if (!block)
      throw new RpcUnavailable(`${this.network.code}: the endpoint returned no latest block`)
    return block
  }

  async probe(): Promise<void> {
    const first = await this.#header('wallet/getblockbynum', { num: 0 })
    if (!first || first.hash !== this.network.genesis) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint's first block is ${String(first?.hash)}, not ${String(this.network.genesis)}`,
      )
    }
  }

  async tip(): Promise<ChainTip> {
    const head = await this.#now('wallet')
    const solid = this.network.confirmations === null ? await this.#now('walletsolidity') : null
    return { height: head.height, hash: head.hash, finalHeight: solid?.height ?? null }
  }

  async head(): Promise<EndpointHead> {
    const { height, time } = await this.#now('wallet')
    return { height, timeMs: time, lacks: null }
  }

  async block(height: number): Promise<ChainBlock | null> {
    return await this.#blocks.read(height)
  }

  async status(hash: string, expected?: ExpectedTransfer): Promise<TransactionStatus> {
    const ask = () => this.#post<Info>('wallet/gettransactioninfobyid', { value: hash })
    let info = await ask()
    if (info.blockNumber === undefined) {
      const pending = await this.#post<{ txID?: string }>('wallet/gettransactionfrompending', {
        value: hash,
      })
      if (pending.txID === hash) return { state: 'mempool' }
      // A block may have included it between the two queries: then neither response contains it,
      // although it is on the chain.
      info = await ask()
    }
    if (info.id === undefined || info.blockNumber === undefined) return { state: 'absent' }
    const block = await this.#post<Block>('wallet/getblockbynum', { num: info.blockNumber })
    const transaction = block.transactions?.find(({ txID }) => txID === hash)
    if (block.blockID === undefined || !transaction) {
      throw new RpcUnavailable(
        `${this.network.code}: the block at ${info.blockNumber} does not contain ${hash}`,
      )
    }
    return {
      state: 'included',
      height: info.blockNumber,
      blockHash: block.blockID,
      succeeded: hasSucceeded(transaction, info, expected),
      fee: BigInt(info.fee ?? 0),
      staking: {
        withdrawn: BigInt(info.withdraw_expire_amount ?? 0),
        time: info.blockTimeStamp ?? block.block_header?.raw_data.timestamp ?? 0,
      },
    }
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    try {
      const { result, code, message } = await this.#post<{
        result?: boolean
        code?: string
        message?: string
      }>('wallet/broadcasthex', {
        transaction: raw,
      })
      if (result === true || code === 'DUP_TRANSACTION_ERROR') return { kind: 'accepted' }
      const reason = `${code ?? 'refused'}: ${plain(message)}`.slice(0, 300)
      return { kind: code === undefined || NODE_TROUBLE.has(code) ? 'unknown' : 'rejected', reason }
    } catch (error) {
      if (error instanceof RpcRefused) return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  /**
   * Returns the reference for a transaction that is built now. Call it last. The reference block is
   * final, so no reorganization removes it; the expiry follows from the head's time, with which
   * nodes compare it. Two results are never equal.
   */
  async reference(): Promise<TronReference> {
    const [solid, head] = [await this.#now('walletsolidity'), await this.#now('wallet')]
    return {
      ...refBlock(solid.height, solid.hash),
      expiration: Math.ceil((head.time + LIFE_MS) / 1000) * 1000,
      timestamp: head.time - this.#below(TIMESTAMP_SPREAD_MS),
    }
  }

  /**
   * Returns true if the transaction can provably never be included any more: a final block is past
   * its expiry (Unix second), and no final block contains it.
   */
  async isDead(hash: string, validUntil: number): Promise<boolean> {
    const isPast = async () => (await this.#now('walletsolidity')).time > validUntil * 1000
    if (!(await isPast())) return false
    const info = await this.#post<Info>('walletsolidity/gettransactioninfobyid', { value: hash })
    const transaction = await this.#post<{ txID?: string }>('walletsolidity/gettransactionbyid', {
      value: hash,
    })
    // The expiry is checked again, because nodes in different states may share one address.
    return info.id === undefined && transaction.txID === undefined && isPast()
  }

  /** Returns the balance in the asset's smallest unit, without staked amounts. */
  async balance(address: string, asset: Asset): Promise<bigint> {
    if (asset.type === 'native') {
      return BigInt(
        (await this.#post<Account>('wallet/getaccount', { address: addressHex(address) }))
          .balance ?? 0,
      )
    }
    const { result } = await this.#constant(
      address,
      asset,
      'balanceOf(address)',
      addressHex(address).slice(2).padStart(64, '0'),
    )
    if (!/^[0-9a-f]{64}$/.test(result))
      throw new RpcUnavailable(`${this.network.code}: balanceOf returned no number`)
    return BigInt(`0x${result}`)
  }

  /** Returns the account; null if it has not been activated. */
  async account(address: string): Promise<TronAccount | null> {
    const result = await this.#post<Account>('wallet/getaccount', { address: addressHex(address) })
    if (result.address === undefined) return null
    const { energyLeft, stakedBandwidthLeft, freeBandwidthLeft } = await this.resources(address)
    // Bandwidth is the resource whose name is omitted, because its number is zero.
    const staked = (resource: TronResource) =>
      (result.frozenV2 ?? [])
        .filter(({ type }) => (type ?? 'BANDWIDTH') === resource)
        .reduce((sum, { amount }) => sum + BigInt(amount ?? 0), 0n)
    return {
      balance: BigInt(result.balance ?? 0),
      staked: { ENERGY: staked('ENERGY'), BANDWIDTH: staked('BANDWIDTH') },
      unfreezing: (result.unfrozenV2 ?? []).map(
        ({ type, unfreeze_amount, unfreeze_expire_time }) => ({
          resource: type === 'ENERGY' ? 'ENERGY' : 'BANDWIDTH',
          amount: BigInt(unfreeze_amount ?? 0),
          expires: Number(unfreeze_expire_time ?? 0),
        }),
      ),
      energy: energyLeft,
      bandwidth: stakedBandwidthLeft + freeBandwidthLeft,
    }
  }

  /**
   * Returns whether the account exists in a final block. An account of a non-final block may have
   * to be created again after a reorganization, at additional cost.
   */
  async isActivated(address: string): Promise<boolean> {
    return (
      (await this.#post<Account>('walletsolidity/getaccount', { address: addressHex(address) }))
        .address !== undefined
    )
  }

  /** Returns whether the address is a contract, to which nodes refuse to send TRX. */
  async isContract(address: string): Promise<boolean> {
    return (
      (
        await this.#post<{ contract_address?: string; bytecode?: string }>('wallet/getcontract', {
          value: addressHex(address),
        })
      ).contract_address !== undefined
    )
  }

  /**
   * Returns the time of the head block in Unix milliseconds, with which nodes compare a
   * transaction's expiry.
   */
  async headTime(): Promise<number> {
    return (await this.#now('wallet')).time
  }

  async resources(address: string): Promise<TronResources> {
    const result = await this.#post<Resources>('wallet/getaccountresource', {
      address: addressHex(address),
    })
    const left = (limit: Int | undefined, used: Int | undefined) => {
      const rest = BigInt(limit ?? 0) - BigInt(used ?? 0)
      return rest > 0n ? rest : 0n
    }
    const perMillion = (limit: Int | undefined, weight: Int | undefined) =>
      BigInt(weight ?? 0) === 0n ? 0n : (BigInt(limit ?? 0) * 1_000_000n) / BigInt(weight ?? 0)
    return {
      energyLeft: left(result.EnergyLimit, result.EnergyUsed),
      stakedBandwidthLeft: left(result.NetLimit, result.NetUsed),
      freeBandwidthLeft: left(result.freeNetLimit, result.freeNetUsed),
      energyUsed: BigInt(result.EnergyUsed ?? 0),
      bandwidthUsed: BigInt(result.NetUsed ?? 0),
      energyPerMillionTrx: perMillion(result.TotalEnergyLimit, result.TotalEnergyWeight),
      bandwidthPerMillionTrx: perMillion(result.TotalNetLimit, result.TotalNetWeight),
    }
  }

  async parameters(): Promise<TronParameters> {
    const { chainParameter } = await this.#post<{
      chainParameter?: { key: string; value?: Int }[]
    }>('wallet/getchainparameters')
    const values = new Map((chainParameter ?? []).map(({ key, value }) => [key, value ?? 0]))
    const value = (key: string): bigint => {
      const result = values.get(key)
      if (result === undefined)
        throw new RpcUnavailable(`${this.network.code}: getchainparameters does not return ${key}`)
      return BigInt(result)
    }
    // With a price of 0 a transfer would be allowed to burn nothing, and every other node would
    // reject it.
    const price = (key: string): bigint => {
      const result = value(key)
      if (result <= 0n)
        throw new RpcUnavailable(`${this.network.code}: getchainparameters returned ${key} 0`)
      return result
    }
    return {
      energySun: price('getEnergyFee'),
      bandwidthSun: price('getTransactionFee'),
      createAccountSun: value('getCreateNewAccountFeeInSystemContract'),
      createAccountFeeSun: value('getCreateAccountFee'),
      unfreezeDelayDays: Number(value('getUnfreezeDelayDays')),
      maxFeeLimit: value('getMaxFeeLimit'),
    }
  }

  /**
   * Returns the energy of a token transfer, including a penalty of the contract.
   * @throws RpcReverted if it would revert
   */
  async energy(o: { asset: Asset; from: string; to: string; amount: bigint }): Promise<bigint> {
    const { energy } = await this.#constant(
      o.from,
      o.asset,
      'transfer(address,uint256)',
      bytesToHex(transferData(o.to, o.amount).subarray(4)),
    )
    return energy
  }

  async #constant(
    owner: string,
    asset: Asset,
    selector: string,
    parameter: string,
  ): Promise<{ energy: bigint; result: string }> {
    const answer = await this.#post<ConstantCall>('wallet/triggerconstantcontract', {
      owner_address: addressHex(owner),
      contract_address: addressHex(asset.contract_address as string),
      function_selector: selector,
      parameter,
    })
    const failed = answer.transaction?.ret?.[0]?.ret
    const said = plain(answer.result?.message)
    const isFailed = failed !== undefined && failed !== 'SUCESS' && failed !== SUCCESS
    // A call that was executed and failed has its own result. Other errors, and a node's own time
    // limit, concern only the node.
    if (isFailed && !OUT_OF_TIME.test(`${failed} ${said}`)) {
      throw new RpcReverted(0, `${asset.asset_name} rejects ${selector}: ${said}`.slice(0, 300))
    }
    if (isFailed || answer.result?.result !== true) {
      throw new RpcUnavailable(
        `${this.network.code}: ${selector}: ${answer.result?.code ?? failed ?? 'no result'}: ${said}`.slice(
          0,
          300,
        ),
      )
    }
    return { energy: BigInt(answer.energy_used ?? 0), result: answer.constant_result?.[0] ?? '' }
  }

  /** Returns the sun of stake whose resource can be lent now. */
  async delegatable(owner: string, resource: TronResource): Promise<bigint> {
    return BigInt(
      (
        await this.#post<{ max_size?: Int }>('wallet/getcandelegatedmaxsize', {
          owner_address: addressHex(owner),
          type: RESOURCE_NUMBERS[resource],
        })
      ).max_size ?? 0,
    )
  }

  /** Returns the sun of stake whose resource one account has lent to another. */
  async delegated(from: string, to: string): Promise<Record<TronResource, bigint>> {
    interface Lent {
      frozen_balance_for_energy?: Int
      frozen_balance_for_bandwidth?: Int
    }
    const { delegatedResource } = await this.#post<{ delegatedResource?: Lent[] }>(
      'wallet/getdelegatedresourcev2',
      {
        fromAddress: addressHex(from),
        toAddress: addressHex(to),
      },
    )
    const sum = (name: keyof Lent) =>
      (delegatedResource ?? []).reduce((total, each) => total + BigInt(each[name] ?? 0), 0n)
    return {
      ENERGY: sum('frozen_balance_for_energy'),
      BANDWIDTH: sum('frozen_balance_for_bandwidth'),
    }
  }

  /** Returns how many more times the account can unstake before a pending amount has matured. */
  async unfreezesLeft(owner: string): Promise<number> {
    return Number(
      (
        await this.#post<{ count?: Int }>('wallet/getavailableunfreezecount', {
          owner_address: addressHex(owner),
        })
      ).count ?? 0,
    )
  }

  /** Returns the sun that a withdrawal would return at the head's time. */
  async withdrawable(owner: string): Promise<bigint> {
    const { time } = await this.#now('wallet')
    return BigInt(
      (
        await this.#post<{ amount?: Int }>('wallet/getcanwithdrawunfreezeamount', {
          owner_address: addressHex(owner),
          timestamp: time,
        })
      ).amount ?? 0,
    )
  }
}

/** Decodes a node's message, which some nodes send as the hex of its text. */
function plain(message: string | undefined): string {
  if (message === undefined) return 'no reason'
  return /^(?:[0-9a-f]{2})+$/i.test(message)
    ? Buffer.from(message, 'hex').toString('utf8')
    : message
}

/** Returns whether an included transaction succeeded and, if expected, made the transfer. */
function hasSucceeded(
  { ret }: NonNullable<Block['transactions']>[number],
  { result, receipt, log }: Info,
  expected: ExpectedTransfer | undefined,
): boolean {
  return (
    ret?.[0]?.contractRet === SUCCESS &&
    result !== 'FAILED' &&
    (receipt?.result ?? SUCCESS) === SUCCESS &&
    (expected === undefined || hasTransfer(log ?? [], expected))
  )
}
