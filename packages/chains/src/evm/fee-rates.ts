import { parseAmount } from '../amount.ts'
import { rising, RpcRefused, RpcUnavailable, type JsonRpc } from '../rpc.ts'
import type { Network } from '../types.ts'
import { reasonOf } from '../reason.ts'
import type { ReportUnreadable } from '../unreadable.ts'
import type { EvmFee } from './build.ts'
import { Answer, type RpcBlock } from './rpc-types.ts'
import { traits } from './traits.ts'

/** Reward percentile of the last ten blocks that each fee level pays. */
const PERCENTILES = { low: 25, medium: 50, high: 75 } as const
const HISTORY_BLOCKS = 10
/** Minimum tip in wei per gas that geth accepts by default. */
const MIN_TIP = 1n
/**
 * Price in percent of the node's own suggestion, on networks where the full gas price is always
 * paid.
 */
const LEGACY_MEDIUM_PERCENT = 110n
const LEGACY_HIGH_PERCENT = 125n
/** Text by which nodes name the tip that they require (geth and its derivatives). */
const NAMED_TIP = /gas tip cap \d{1,30}, minimum needed (\d{1,30})/i
/** Time in milliseconds for which a tip that a refusal named applies. */
const NAMED_MS = 3_600_000
/** A tip that a refusal names is followed up to this multiple of the usual tips. */
const NAMED_MOST = 4n

interface FeeHistory {
  baseFeePerGas?: (string | null)[] | null
  reward?: (string | null)[][] | null
}

/** maxFeePerGas and tip by level, in wei per gas. */
export type EvmFeeRates = Record<'low' | 'medium' | 'high', EvmFee>

const most = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** Reads an endpoint's fee rates, and remembers the tip that its node requires. */
export class FeeMarket {
  readonly #network: Network
  readonly #call: JsonRpc
  readonly #now: () => number
  readonly #report: ReportUnreadable
  readonly #minTip: bigint
  #named: { tip: bigint; at: number } | null = null

  /**
   * @param minTip configured minimum tip in Gwei; absent: the registry's
   * @param report is called with each method that the endpoint refuses
   */
  constructor(
    network: Network,
    minTip: string | undefined,
    call: JsonRpc,
    now: () => number,
    report: ReportUnreadable,
  ) {
    this.#report = report
    this.#network = network
    this.#call = call
    this.#now = now
    const least =
      minTip === undefined
        ? BigInt(network.min_tip ?? MIN_TIP)
        : parseAmount(minTip, traits.feeRateDecimals)
    this.#minTip = most(least, MIN_TIP)
  }

  /** Notes a node's refusal of a broadcast. If it names the tip that it requires, later rates pay it. */
  refused(reason: string): void {
    const tip = NAMED_TIP.exec(reason)?.[1]
    if (tip !== undefined) this.#named = { tip: BigInt(tip), at: this.#now() }
  }

  /**
   * Returns the fee rates: eth_feeHistory percentiles 25, 50, 75; max = 2 × base fee + tip. The
   * legacy gas price is used if blocks have no base fee. No tip is below the minimum of the network
   * and, up to four times the larger of that minimum and the market's high tip, below the one that
   * the node named when it refused a transaction.
   * @throws RpcUnavailable if the node returns no price, or 0: no node would accept such a
   *   transaction
   */
  async rates(): Promise<EvmFeeRates> {
    const isLegacy = this.#network.legacy_gas_price === true
    const history = isLegacy ? {} : await this.#feeHistory()
    const base = isLegacy ? undefined : await this.#baseFee(history)
    if (base === undefined) {
      const price = await this.#suggestedPrice()
      const floor = this.#leastTip(price)
      const level = (percent: bigint): EvmFee => {
        const maxFeePerGas = most((price * percent) / 100n, floor)
        return { maxFeePerGas, maxPriorityFeePerGas: maxFeePerGas, legacy: true }
      }
      return {
        low: level(100n),
        medium: level(LEGACY_MEDIUM_PERCENT),
        high: level(LEGACY_HIGH_PERCENT),
      }
    }
    const rewardsAt = (column: number): bigint[] =>
      (Array.isArray(history.reward) ? history.reward : [])
        .map((row) => this.#historyAnswer.quantity(row[column] ?? '0x0', 'reward'))
        .filter((reward) => reward > 0n)
        .sort((a, b) => (a < b ? -1 : 1))
    const medians = [0, 1, 2].map((column) => {
      const rewards = rewardsAt(column)
      return rewards[Math.floor(rewards.length / 2)]
    })
    const suggested = medians.includes(undefined) ? await this.#tip(base) : 0n
    const tips = medians.map((median) => median ?? suggested) as [bigint, bigint, bigint]
    const { low, medium, high } = rising({ low: tips[0], medium: tips[1], high: tips[2] })
    const floor = this.#leastTip(high)
    const level = (market: bigint): EvmFee => {
      const tip = most(market, floor)
      return { maxFeePerGas: 2n * base + tip, maxPriorityFeePerGas: tip }
    }
    return { low: level(low), medium: level(medium), high: level(high) }
  }

  /** Returns the least tip that the node accepts, as far as is known. `high`: the market's. */
  #leastTip(high: bigint): bigint {
    if (this.#named === null || this.#now() - this.#named.at > NAMED_MS) return this.#minTip
    const bound = NAMED_MOST * most(high, this.#minTip)
    return most(this.#named.tip < bound ? this.#named.tip : bound, this.#minTip)
  }

  get #historyAnswer(): Answer {
    return new Answer(this.#network.code, 'eth_feeHistory')
  }

  /**
   * Returns the next block's base fee; if the node has no history (it was restarted), the newest
   * block's. Undefined if blocks have none.
   */
  async #baseFee(history: FeeHistory): Promise<bigint | undefined> {
    const next = Array.isArray(history.baseFeePerGas) ? history.baseFeePerGas.at(-1) : undefined
    if (next !== undefined && next !== null)
      return this.#historyAnswer.quantity(next, 'baseFeePerGas')
    const newest = await this.#call<RpcBlock | null>('eth_getBlockByNumber', ['latest', false])
    if (newest === null)
      throw new RpcUnavailable(`${this.#network.code}: the node does not return its newest block`)
    const { baseFeePerGas: base } = newest
    if (base === undefined || base === null) return undefined
    return new Answer(this.#network.code, 'eth_getBlockByNumber').quantity(base, 'baseFeePerGas')
  }

  /**
   * Returns the gas price that the node suggests.
   * @throws RpcUnavailable if it is 0
   */
  async #suggestedPrice(): Promise<bigint> {
    const answer = new Answer(this.#network.code, 'eth_gasPrice')
    const price = answer.quantity(await this.#call<unknown>('eth_gasPrice', []), 'price')
    return price > 0n ? price : answer.refuse('returned a price of 0')
  }

  /**
   * Returns the node's suggested tip; if it has none, its gas price minus the base fee. At least
   * one wei.
   */
  async #tip(base: bigint): Promise<bigint> {
    const suggested = await this.#unlessRefused('eth_maxPriorityFeePerGas')
    if (suggested !== null && suggested > 0n) return suggested
    // If the base fee is 0 (BSC), the tip is the whole price.
    const price =
      base === 0n
        ? await this.#suggestedPrice()
        : ((await this.#unlessRefused('eth_gasPrice')) ?? 0n)
    return price > base + MIN_TIP ? price - base : MIN_TIP
  }

  /** Returns a price; null if the node does not serve the method. */
  async #unlessRefused(method: string): Promise<bigint | null> {
    try {
      return new Answer(this.#network.code, method).quantity(
        await this.#call<unknown>(method, []),
        'price',
      )
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      this.#otherWay(method, error)
      return null
    }
  }

  #otherWay(method: string, error: RpcRefused): void {
    const reason = reasonOf(error)
    this.#report({ network: this.#network.code, kind: 'method', name: method, reason })
  }

  /** Returns the fee history; empty if the node does not serve it: it is older than the base fee, or refuses. */
  async #feeHistory(): Promise<FeeHistory> {
    try {
      return (
        (await this.#call<FeeHistory | null>('eth_feeHistory', [
          `0x${HISTORY_BLOCKS.toString(16)}`,
          'latest',
          Object.values(PERCENTILES),
        ])) ?? {}
      )
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      this.#otherWay('eth_feeHistory', error)
      return {}
    }
  }
}
