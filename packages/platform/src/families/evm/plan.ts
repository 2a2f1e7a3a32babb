import { evm as evmBuild, OMNIBUS_INDEX, pathOf, RpcRefused, TANK_SUB_ACCOUNT, type Asset, type EvmFeeRates, type Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import type { Services } from '../../engine/services.ts'
import { DEFAULT_LEVEL, feeRateInteger, type FeeLevel } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { l1FeeOf } from './l1-fee.ts'
import type { Fuelling } from '../../gas-tanks/fuelling.ts'

/** Gas and price of one transaction, decided once and kept with it. All in wei or gas. */
export interface GasPlan { gas: bigint; fee: evmBuild.EvmFee; /** Of the fuel, which must not wait behind a low rate of the caller's: all others of the tank wait behind it. */ fuelFee: evmBuild.EvmFee; /** Roll-ups: what publishing the transaction below may cost. */ l1Fee: bigint; need: bigint }

/** How often a transfer that would revert is looked at again before it fails. */
export const REVERT_ATTEMPTS_MAX = 8

export function planOf(row: TransactionRow): GasPlan | null {
  const { gas, max_fee_per_gas: max, max_priority_fee_per_gas: tip, need, legacy, l1_fee: l1Fee } = row.plan
  if (gas === undefined || max === undefined || tip === undefined || need === undefined) return null
  const fee = { maxFeePerGas: BigInt(max), maxPriorityFeePerGas: BigInt(tip), legacy: legacy === '1' }
  return { gas: BigInt(gas), fee, fuelFee: fee, l1Fee: BigInt(l1Fee ?? '0'), need: BigInt(need) }
}

export function planFields(plan: Omit<GasPlan, 'fuelFee'>): Record<string, string> {
  return {
    gas: plan.gas.toString(), max_fee_per_gas: plan.fee.maxFeePerGas.toString(), max_priority_fee_per_gas: plan.fee.maxPriorityFeePerGas.toString(),
    l1_fee: plan.l1Fee.toString(), need: plan.need.toString(), legacy: plan.fee.legacy ? '1' : '0',
  }
}

/** The caller's own rate is the maximum; else the level's of the moment. */
export function feeOf(row: TransactionRow, rates: EvmFeeRates, network: Network): evmBuild.EvmFee {
  const level = rates[(row.fee_level as FeeLevel | null) ?? DEFAULT_LEVEL]
  if (row.fee_rate === null) return level
  const maxFeePerGas = feeRateInteger(network, row.fee_rate)
  return { ...level, maxFeePerGas, maxPriorityFeePerGas: level.maxPriorityFeePerGas < maxFeePerGas ? level.maxPriorityFeePerGas : maxFeePerGas }
}

/** The fuel is a transaction too, no longer than the one that it is for. */
export function fuelOf(plan: GasPlan): Fuelling {
  const cost = evmBuild.NATIVE_GAS * plan.fuelFee.maxFeePerGas + plan.l1Fee
  return {
    need: plan.need, worst: plan.gas * plan.fee.maxFeePerGas + plan.l1Fee, fields: planFields(plan), cost,
    fuelFields: {
      ...planFields({ gas: evmBuild.NATIVE_GAS, fee: plan.fuelFee, l1Fee: plan.l1Fee, need: cost }), for_gas: plan.gas.toString(), for_max_fee_per_gas: plan.fee.maxFeePerGas.toString(), for_l1_fee: plan.l1Fee.toString(),
    },
  }
}

/** Path of the address that a transaction spends from. */
export async function sourcePath(database: Queryable, row: TransactionRow, network: Network): Promise<number[]> {
  if (row.source_type === 'GAS_TANK') return pathOf(network, TANK_SUB_ACCOUNT, OMNIBUS_INDEX)
  const found = await database.one<{ path_index: number; sub: number }>(
    `select c.path_index, s.path_index sub from chain_addresses c join sub_accounts s on s.id = c.sub_account_id where c.network = $1 and c.address = $2 and c.workspace_id = $3`,
    [network.code, row.source_id, row.workspace_id])
  if (!found) throw new Error(`source ${row.source_id} is not an address of ours`)
  return pathOf(network, found.sub, found.path_index)
}

/** Asks the chain for gas and price. `reverts`: the transfer would fail on chain, with the chain's reason. */
export async function planGas(services: Services, row: TransactionRow, network: Network, asset: Asset, amount: bigint): Promise<{ plan: GasPlan } | { reverts: string }> {
  const client = services.networks.evm(network.code)
  const rates = await services.networks.evmFeeRates(network.code)
  const fee = feeOf(row, rates, network)
  let gas: bigint
  try {
    gas = await client.gasLimit({ asset, from: row.source_id as string, to: row.destination_id as string, amount })
  } catch (error) {
    if (error instanceof RpcRefused) return { reverts: error.message }
    throw error
  }
  const l1Fee = await l1FeeOf(services, network, asset, { to: row.destination_id as string, amount, gas, fee })
  const fuelFee = rates.medium.maxFeePerGas > fee.maxFeePerGas ? rates.medium : fee
  return { plan: { gas, fee, fuelFee, l1Fee, need: evmBuild.fuelFor(gas, fee.maxFeePerGas, l1Fee) } }
}
