import { ChainError, evm as evmBuild, formatAmount, OMNIBUS_INDEX, pathOf, RpcRefused, TANK_SUB_ACCOUNT, type Asset, type EvmFeeRates, type Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import { lockedBalance, post } from '../../ledger/post.ts'
import type { Services } from '../../services.ts'
import { DEFAULT_LEVEL, feeRateInteger, type FeeLevel } from '../estimate.ts'
import type { TransactionRow } from '../present.ts'
import { l1FeeOf } from './l1-fee.ts'

/** Gas and price of one transaction, decided once and kept with it. All in wei or gas. */
export interface GasPlan { gas: bigint; fee: evmBuild.EvmFee; /** Roll-ups: what publishing the transaction below may cost. */ l1Fee: bigint; need: bigint }

/** How often a transfer that would revert is looked at again before it fails. */
export const REVERT_ATTEMPTS_MAX = 8

export function planOf(row: TransactionRow): GasPlan | null {
  const { gas, max_fee_per_gas: max, max_priority_fee_per_gas: tip, need, legacy, l1_fee: l1Fee } = row.plan
  if (gas === undefined || max === undefined || tip === undefined || need === undefined) return null
  return { gas: BigInt(gas), fee: { maxFeePerGas: BigInt(max), maxPriorityFeePerGas: BigInt(tip), legacy: legacy === '1' }, l1Fee: BigInt(l1Fee ?? '0'), need: BigInt(need) }
}

export function planFields(plan: GasPlan): Record<string, string> {
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

/** Path of the address that a transaction spends from. */
export async function sourcePath(database: Queryable, row: TransactionRow, network: Network): Promise<number[]> {
  if (row.kind === 'FUEL' || row.kind === 'DRAIN') return pathOf(network, TANK_SUB_ACCOUNT, OMNIBUS_INDEX)
  const found = await database.one<{ path_index: number; sub: number }>(
    `select c.path_index, s.path_index sub from chain_addresses c join sub_accounts s on s.id = c.sub_account_id where c.network = $1 and c.address = $2 and c.workspace_id = $3`,
    [network.code, row.source_id, row.workspace_id])
  if (!found) throw new Error(`source ${row.source_id} is not an address of ours`)
  return pathOf(network, found.sub, found.path_index)
}

/** Asks the chain for gas and price. `reverts`: the transfer would fail on chain, with the chain's reason. */
export async function planGas(services: Services, row: TransactionRow, network: Network, asset: Asset, amount: bigint): Promise<{ plan: GasPlan } | { reverts: string }> {
  const client = services.networks.evm(network.code)
  const fee = feeOf(row, await services.networks.evmFeeRates(network.code), network)
  let gas: bigint
  try {
    gas = await client.gasLimit({ asset, from: row.source_id as string, to: row.destination_id as string, amount })
  } catch (error) {
    if (error instanceof RpcRefused) return { reverts: error.message }
    throw error
  }
  const l1Fee = await l1FeeOf(services, network, asset, { to: row.destination_id as string, amount, gas, fee })
  return { plan: { gas, fee, l1Fee, need: evmBuild.fuelFor(gas, fee.maxFeePerGas, l1Fee) } }
}

/** Takes what is missing at the source address from the gas tank. Answers the reason where the tank holds too little. */
export async function reserveFuel(services: Services, tx: Queryable, row: TransactionRow, network: Network, plan: GasPlan): Promise<{ fuelId: string | null; floatTaken: bigint } | { empty: string }> {
  const native = services.registry.asset(network.native_asset)
  if (!native) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  const scope = { workspace: row.workspace_id, asset: native.asset_name }
  const float = await lockedBalance(tx, { ...scope, kind: 'float', address: row.source_id })
  const floatTaken = float < plan.need ? (float > 0n ? float : 0n) : plan.need
  const fuel = plan.need - floatTaken
  if (fuel > 0n) {
    // The fuel is a transaction too, no longer than the one that it is for.
    const cost = evmBuild.NATIVE_GAS * plan.fee.maxFeePerGas + plan.l1Fee
    const tank = await tx.one<{ address: string }>('select address from gas_tanks where workspace_id = $1 and network = $2', [row.workspace_id, network.code])
    const held = tank ? await lockedBalance(tx, { ...scope, kind: 'tank' }) : 0n
    if (!tank || held < fuel + cost) {
      const show = (wei: bigint) => `${formatAmount(wei, native.decimals)} ${native.asset_name}`
      return { empty: `the gas tank of ${network.code}${tank ? ` (${tank.address})` : ''} holds ${show(held)}; this transfer needs ${show(fuel + cost)}, so ${show(fuel + cost - held)} are missing` }
    }
    const fuelId = services.environment.uuid()
    await post(tx, 'fuel-reserve', fuelId, [{ ...scope, kind: 'tank', amount: -(fuel + cost) }, { ...scope, kind: 'tank_reserved', amount: fuel + cost }])
    await tx.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, parent_id, asset, network, amount, fee, fee_asset, source_type, source_id,
         destination_type, destination_id, state, status, plan, next_run_at)
       values ($1, 'FUEL', $2, $3, $4, $5, $6, $7, $8, $5, 'GAS_TANK', $9, $10, $11, 'QUEUED', 'pending', $12, now())`,
      [fuelId, row.workspace_id, row.sub_account_id, row.id, native.asset_name, network.code, fuel.toString(), cost.toString(), tank.address,
        'OMNIBUS', row.source_id, JSON.stringify({
          ...planFields({ gas: evmBuild.NATIVE_GAS, fee: plan.fee, l1Fee: plan.l1Fee, need: cost }), for_gas: plan.gas.toString(), for_max_fee_per_gas: plan.fee.maxFeePerGas.toString(), for_l1_fee: plan.l1Fee.toString(),
        })])
    await post(tx, 'float-reserve', row.id, [{ ...scope, kind: 'float', address: row.source_id, amount: -floatTaken }, { ...scope, kind: 'float_reserved', address: row.source_id, amount: floatTaken }])
    return { fuelId, floatTaken }
  }
  await post(tx, 'float-reserve', row.id, [{ ...scope, kind: 'float', address: row.source_id, amount: -floatTaken }, { ...scope, kind: 'float_reserved', address: row.source_id, amount: floatTaken }])
  return { fuelId: null, floatTaken }
}
