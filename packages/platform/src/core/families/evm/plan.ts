import { evm as evmBuild, RpcReverted, type EvmFeeRates, type Network } from '@custody/chains'
import { DEFAULT_LEVEL, type FeeLevel, type Priced, type Task } from '../../engine/chain.ts'
import type { Plan, TransactionRow } from '../../engine/transaction.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import type { Evm } from './context.ts'
import { fuelGasOf, gasLimitOf } from './gas.ts'
import { l1FeeOf } from './l1-fee.ts'

/** Gas and price of one transaction, decided once and stored with it. All values in wei or gas. */
export interface GasPlan {
  gas: bigint
  fee: evmBuild.EvmFee
  /** Gas limit of the fuel transaction. */
  fuelGas: bigint
  /**
   * Price of the fuel transaction. The caller's low rate does not apply to it, because all later
   * transactions of the gas tank wait behind it.
   */
  fuelFee: evmBuild.EvmFee
  /**
   * OP Stack rollups: maximum fee for publishing the transaction on L1, including the operator fee.
   */
  l1Fee: bigint
  need: bigint
}

/** A plan without its fuel, as stored with a transaction. */
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
    throw new Error(
      `a transaction of the kind ${row.kind} in the state ${row.state} has no fee plan`,
    )
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
 * Returns the price of a transfer: the caller's own rate as maximum, otherwise the current price of
 * the level.
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
 * Returns the cost and plan of the fuel transaction. On a rollup, publishing it costs at most as
 * much as publishing the transfer, which is at least as long.
 * @param lost earlier fuel of the same address that never arrived but that signer nodes still count
 *   as present, in wei
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
 * Plans gas and price with the chain's estimates. `reverts`: the chain's reason why the transfer
 * would revert.
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
  // The L1 fee also covers the fuel transaction: its bytes are not longer, and the larger gas limit
  // is used.
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
