import { evm as evmBuild, RpcReverted, type EvmFeeRates, type Network } from '@custody/chains'
import { DEFAULT_LEVEL, type FeeLevel, type Priced, type Task } from '../../engine/chain.ts'
import type { Plan, TransactionRow } from '../../engine/transaction.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import type { Evm } from './context.ts'
import { fuelGasOf, gasLimitOf } from './gas.ts'
import { l1FeeOf } from './l1-fee.ts'

/** Gas and price of one transaction, decided once and kept with it. All in wei or gas. */
export interface GasPlan {
  gas: bigint
  fee: evmBuild.EvmFee
  /** Gas limit of the fuel. */
  fuelGas: bigint
  /**
   * Price of the fuel, never the caller's low rate: all later transactions of the tank wait behind
   * it.
   */
  fuelFee: evmBuild.EvmFee
  /** Roll-ups of the OP Stack: what publishing the transaction below and the operator may cost. */
  l1Fee: bigint
  need: bigint
}

/** A plan without its fuel, as it is kept with a transaction. */
export type OwnPlan = Omit<GasPlan, 'fuelGas' | 'fuelFee'>

export function planOf(row: TransactionRow): OwnPlan {
  const {
    gas,
    max_fee_per_gas: max,
    max_priority_fee_per_gas: tip,
    need,
    legacy,
    l1_fee: l1Fee,
  } = row.plan
  if (gas === undefined || max === undefined || tip === undefined || need === undefined) {
    throw new Error(`a ${row.kind} in the state ${row.state} has no plan`)
  }
  const fee = {
    maxFeePerGas: BigInt(max),
    maxPriorityFeePerGas: BigInt(tip),
    legacy: legacy === '1',
  }
  return { gas: BigInt(gas), fee, l1Fee: BigInt(l1Fee ?? '0'), need: BigInt(need) }
}

export function planFields(plan: OwnPlan): Plan {
  return {
    gas: plan.gas.toString(),
    max_fee_per_gas: plan.fee.maxFeePerGas.toString(),
    max_priority_fee_per_gas: plan.fee.maxPriorityFeePerGas.toString(),
    l1_fee: plan.l1Fee.toString(),
    need: plan.need.toString(),
    legacy: plan.fee.legacy ? '1' : '0',
  }
}

/**
 * The price of a transfer: the caller's own rate is the maximum, else the level's price of the
 * moment.
 */
function feeOf(row: TransactionRow, rates: EvmFeeRates, network: Network): evmBuild.EvmFee {
  const level = rates[(row.fee_level as FeeLevel | null) ?? DEFAULT_LEVEL]
  if (row.fee_rate === null) return level
  const maxFeePerGas = feeRateInteger(network, row.fee_rate)
  return {
    ...level,
    maxFeePerGas,
    maxPriorityFeePerGas:
      level.maxPriorityFeePerGas < maxFeePerGas ? level.maxPriorityFeePerGas : maxFeePerGas,
  }
}

export const worstOf = ({ gas, fee, l1Fee }: Pick<GasPlan, 'gas' | 'fee' | 'l1Fee'>): bigint =>
  gas * fee.maxFeePerGas + l1Fee

/**
 * What the fuel itself costs. Publishing it on a roll-up costs no more than its transfer, whose
 * bytes are at least as long.
 * @param lost earlier fuel of the same address that never arrived, which signer nodes still count
 *   there; wei
 */
export function fuelOf(plan: GasPlan, lost = 0n): Priced['fuel'] {
  const headroom = plan.fee.maxFeePerGas * evmBuild.FUEL_NUMERATOR
  const lostGas = lost === 0n ? 0n : (lost * evmBuild.FUEL_DENOMINATOR + headroom - 1n) / headroom
  const cost = plan.fuelGas * plan.fuelFee.maxFeePerGas + plan.l1Fee
  return {
    cost,
    plan: {
      ...planFields({ gas: plan.fuelGas, fee: plan.fuelFee, l1Fee: plan.l1Fee, need: cost }),
      for_gas: (plan.gas + lostGas).toString(),
      for_max_fee_per_gas: plan.fee.maxFeePerGas.toString(),
      for_l1_fee: plan.l1Fee.toString(),
    },
  }
}

/**
 * Asks the chain for gas and price. `reverts`: the transfer would fail on chain, with the chain's
 * reason.
 */
export async function planGas(
  evm: Evm,
  { row, asset, amount, sweeps }: Task,
): Promise<{ plan: GasPlan } | { reverts: string }> {
  const rates = await evm.feeRates()
  const fee = feeOf(row, rates, evm.network)
  const [from, to] = [row.source_id as string, row.destination_id as string]
  let gas: bigint
  let fuelGas: bigint
  // A sweep of the native coin pays for itself.
  const hasFuel = !(sweeps && asset.type === 'native')
  try {
    ;[gas, fuelGas] = await Promise.all([
      gasLimitOf(evm, { asset, from, to, amount }),
      hasFuel ? fuelGasOf(evm, row, from) : evmBuild.NATIVE_GAS,
    ])
  } catch (error) {
    if (error instanceof RpcReverted) return { reverts: error.message }
    throw error
  }
  // The fuel's own may not be more: its bytes are no longer, and the gas is that of the larger.
  const l1Fee = await l1FeeOf(evm, asset, { to, amount, gas: gas > fuelGas ? gas : fuelGas, fee })
  const fuelFee = rates.medium.maxFeePerGas > fee.maxFeePerGas ? rates.medium : fee
  return {
    plan: {
      gas,
      fee,
      fuelGas,
      fuelFee,
      l1Fee,
      need: evmBuild.fuelFor(gas, fee.maxFeePerGas, l1Fee),
    },
  }
}
