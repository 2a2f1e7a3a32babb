import { RpcRefused, tron as tronBuild, type Asset, type Network, type TronParameters } from '@custody/chains'
import { activationOf, priceOf } from './price.ts'
import { ownPoints } from './counted.ts'
import { planLoan } from './plan-loan.ts'
import type { Services } from '../../engine/services.ts'
import { feeRateInteger } from '../../transactions/estimate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Fuelling } from '../../gas-tanks/fuelling.ts'

/** The most that a transfer of TRX costs beyond what it moves. Free and staked bandwidth may make it less: what is left stays float. */
export async function nativeCost(services: Services, network: Network, parameters: TronParameters, to: string): Promise<{ points: bigint; activation: bigint; cost: bigint }> {
  const points = tronBuild.transferBandwidth(0n)
  const activation = await services.networks.tron(network.code).isActivated(to) ? 0n : activationOf(parameters)
  return { points, activation, cost: activation > 0n ? activation : points * parameters.bandwidthSun }
}

/** Asks the chain what a transfer takes. `reverts`: it would fail, with the chain's reason; `refused`: it costs more than its caller allows. */
export async function planTron(services: Services, row: TransactionRow, network: Network, asset: Asset, amount: bigint): Promise<Fuelling | { reverts: string } | { refused: string }> {
  const client = services.networks.tron(network.code)
  const parameters = await services.networks.tronParameters(network.code)
  const price = priceOf(asset, parameters)
  if (row.fee_rate !== null && feeRateInteger(network, row.fee_rate) < price) return { refused: `fee_rate: the network's price is ${price} Sun, and the transfer allows ${row.fee_rate}` }
  const [from, to] = [row.source_id as string, row.destination_id as string]
  let units: bigint
  let extra: bigint
  let worst: bigint
  let creates = false
  let feeLimit = 0n
  if (asset.type === 'native') {
    const { points, activation, cost } = await nativeCost(services, network, parameters, to)
    units = points
    extra = activation
    worst = cost
    creates = activation > 0n
  } else {
    try {
      units = await client.energy({ asset, from, to, amount })
    } catch (error) {
      if (error instanceof RpcRefused) return { reverts: error.message }
      throw error
    }
    feeLimit = tronBuild.feeLimitFor(units, price)
    extra = tronBuild.transferBandwidth(feeLimit) * parameters.bandwidthSun
    worst = feeLimit + extra
  }
  const points = tronBuild.transferBandwidth(feeLimit)
  const own = await ownPoints(services, row, network)
  // fee_limit stays whole: it caps staked energy too.
  const most = feeLimit / price
  const energy = asset.type === 'native' ? 0n : own.energy < most ? own.energy : most
  // Bandwidth is paid by stake as a whole or not at all.
  const bandwidth = own.bandwidth >= points && !creates ? points : 0n
  const loan = asset.type === 'native' || units <= energy ? null : await planLoan(services, row, network, parameters, { missing: most - energy, burnt: (units - energy) * price })
  const need = worst - (loan ? most : energy) * price - bandwidth * parameters.bandwidthSun
  // A source that has never held TRX comes to life by its fuel.
  const fuel = await nativeCost(services, network, parameters, from)
  return {
    need, worst: need, cost: fuel.cost, ...(energy + bandwidth > 0n ? { counted: own.mark } : {}), ...(loan ? { loan } : {}),
    fields: {
      fee_limit: feeLimit.toString(), need: need.toString(), energy_counted: (asset.type === 'native' ? 0n : most).toString(), bandwidth_counted: points.toString(),
      energy_spared: energy.toString(), bandwidth_spared: bandwidth.toString(),
    },
    fuelFields: { fee_limit: '0', need: fuel.cost.toString(), for_gas: units.toString(), for_max_fee_per_gas: price.toString(), for_l1_fee: extra.toString() },
  }
}
