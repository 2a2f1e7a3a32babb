import { parseAmount } from '../amount.ts'
import { NoFeeEstimate, type FeeFloors, type LevelRates } from '../rpc.ts'
import type { Network } from '../types.ts'

type FeeLevelName = keyof LevelRates
const LEVELS = ['low', 'medium', 'high'] as const satisfies readonly FeeLevelName[]

/**
 * Decimals of a fee rate in satoshi per vbyte. Without the decimal point it is satoshi per 1000
 * vbytes.
 */
const RATE_DECIMALS = 3
/**
 * Time in milliseconds for which the last estimate is used if the node has none, for example after
 * a restart or with too few transactions.
 */
const LAST_ESTIMATE_MS = 2 * 3_600_000

/**
 * Fee rates with their source. `readAt`: when the oldest estimate among the rates was read.
 * `basis`: the least reliable source among them.
 */
export interface FeeReading {
  rates: LevelRates
  readAt: number
  basis: 'estimate' | 'last_estimate' | 'configured'
}

type Sourced = { rate: bigint; at: number; basis: FeeReading['basis'] }

const highest = (...rates: (bigint | undefined)[]): bigint =>
  rates.reduce<bigint>((most, each) => (each !== undefined && each > most ? each : most), 0n)

/**
 * Converts a node's estimates into rates of the three levels, and caches estimates for times when
 * it has none.
 */
export class FeeRates {
  readonly #network: Network
  readonly #least: bigint
  readonly #floors: Partial<LevelRates>
  readonly #now: () => number
  readonly #last = new Map<FeeLevelName, { rate: bigint; at: number }>()

  /** @param floors minimum rates from the operator, which replace the registry's level by level */
  constructor(network: Network, floors: FeeFloors | undefined, now: () => number) {
    this.#network = network
    this.#now = now
    this.#least = BigInt(network.utxo?.min_fee_rate ?? 1) * 1000n
    const written = { ...network.utxo?.fee_floors, ...floors }
    this.#floors = Object.fromEntries(
      LEVELS.flatMap((level) =>
        written[level] === undefined ? [] : [[level, parseAmount(written[level], RATE_DECIMALS)]],
      ),
    )
  }

  /**
   * Returns the rates in satoshi per 1000 vbytes: the node's estimate of a level, else the last one
   * of at most {@link LAST_ESTIMATE_MS}, else the configured minimum; never below the node's
   * minimum, the configured one, or a lower level.
   * @param nodeFloor rate below which the node accepts no transaction; 0 if it does not report one
   * @throws NoFeeEstimate if no level has an estimate, a recent one, or a configured minimum
   */
  read(estimates: Record<FeeLevelName, bigint | undefined>, nodeFloor: bigint): FeeReading {
    const now = this.#now()
    const sources = LEVELS.map((level) => this.#sourceOf(level, estimates[level], now))
    const filled = sources.map(
      (source, at) =>
        // A level without any source uses the next higher level; if there is none, the estimate of
        // the next lower one.
        source ??
        sources.slice(at + 1).find(Boolean) ??
        sources.slice(0, at).findLast((each) => each && each.basis !== 'configured'),
    )
    const rates: bigint[] = []
    for (const [at, level] of LEVELS.entries()) {
      const source = filled[at]
      if (!source) throw new NoFeeEstimate(this.#network.code, level)
      rates.push(highest(source.rate, this.#floors[level], nodeFloor, this.#least, rates.at(-1)))
    }
    const used = filled as Sourced[]
    const basis =
      (['configured', 'last_estimate'] as const).find((each) =>
        used.some((source) => source.basis === each),
      ) ?? 'estimate'
    const [low, medium, high] = rates as [bigint, bigint, bigint]
    return {
      rates: { low, medium, high },
      readAt: Math.min(...used.map((source) => source.at)),
      basis,
    }
  }

  #sourceOf(level: FeeLevelName, estimate: bigint | undefined, now: number): Sourced | undefined {
    if (estimate !== undefined) {
      this.#last.set(level, { rate: estimate, at: now })
      return { rate: estimate, at: now, basis: 'estimate' }
    }
    const last = this.#last.get(level)
    if (last && Math.abs(now - last.at) <= LAST_ESTIMATE_MS)
      return { ...last, basis: 'last_estimate' }
    const floor = this.#floors[level]
    return floor === undefined ? undefined : { rate: floor, at: now, basis: 'configured' }
  }
}
