import type { Network } from '../types.ts'
import { paramsOf, scriptOf } from './address.ts'
import { outpointOf, type Selection, type Utxo } from './select.ts'
import { dustLimit, virtualSize } from './size.ts'
import { CONSOLIDATION } from './traits.ts'

/** Coins that are to be merged. Amounts in satoshi. */
interface MergeRequest {
  /** Coins of the wallet that may be spent, in any order. */
  utxos: readonly Utxo[]
  changeAddress: string
  /** Satoshi per 1000 vbytes. */
  feeRate: bigint
  /** Largest number of coins that may be merged. */
  countMost: number
  /** Coins below this value are left. */
  least: bigint
  /** Largest sum of the coins. */
  sumMost: bigint
}

/**
 * Result of {@link selectConsolidation}. `few`: too few coins are worth merging. `sum`: there are
 * enough, but their sum would be too large. `fee`: the fee would exceed the signer nodes' cap, or leave
 * less than dust.
 */
export type Consolidated = { selection: Selection; sum: bigint } | { lacks: 'few' | 'sum' | 'fee' }

/** Returns the smallest value of a coin that is worth more than the fee of its own input, in satoshi. */
export function leastWorthMerging(network: Network, feeRate: bigint): bigint {
  const params = paramsOf(network)
  const perInput = BigInt(virtualSize(params, 2, []) - virtualSize(params, 1, []))
  return (perInput * feeRate) / 1000n + 1n
}

/**
 * Chooses the smallest coins that one consolidation can merge, and returns the total less the fee to the
 * wallet. Every coin is worth more than the fee of its own input at the rate.
 */
export function selectConsolidation(
  network: Network,
  { utxos, changeAddress, feeRate, countMost, least, sumMost }: MergeRequest,
): Consolidated {
  const { inputsLeast, inputsMost } = CONSOLIDATION
  const params = paramsOf(network)
  const script = scriptOf(network, changeAddress)
  const sizeOf = (inputs: number) => BigInt(virtualSize(params, inputs, [script.length]))
  const feeOf = (inputs: number) => (sizeOf(inputs) * feeRate) / 1000n
  const worth = leastWorthMerging(network, feeRate)
  const worthwhile = utxos
    .filter(({ value }) => value >= least && value >= worth)
    .sort((a, b) =>
      a.value === b.value ? (outpointOf(a) < outpointOf(b) ? -1 : 1) : a.value < b.value ? -1 : 1,
    )
    .slice(0, Math.max(0, Math.min(inputsMost, countMost)))
  if (worthwhile.length < inputsLeast) return { lacks: 'few' }
  const chosen: Utxo[] = []
  let sum = 0n
  let lacks: 'sum' | 'fee' = 'fee'
  for (const coin of worthwhile) {
    if (sum + coin.value > sumMost) {
      lacks = 'sum'
      break
    }
    if (feeOf(chosen.length + 1) > BigInt(network.fee_cap)) break
    chosen.push(coin)
    sum += coin.value
  }
  if (chosen.length < inputsLeast) return { lacks }
  const fee = feeOf(chosen.length)
  if (sum - fee < dustLimit(params, script)) return { lacks: 'fee' }
  const vsize = Number(sizeOf(chosen.length))
  return { selection: { utxos: chosen, fee, change: sum - fee, vsize }, sum }
}
