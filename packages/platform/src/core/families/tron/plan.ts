import { RpcReverted, tron as tronBuild } from '@custody/chains'
import { fail, type Fail, type Priced, type Task, type Wait } from '../../engine/chain.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import { wouldRevert } from '../reverts.ts'
import type { Tron } from './context.ts'
import { isCarriedFree, nativeCost } from './cost.ts'
import { ownPoints } from './own-points.ts'
import { planLoan } from './plan-loan.ts'
import { priceOf } from './price.ts'

/**
 * Plans energy, bandwidth and activation of a transfer, and its fuel. A sweep of TRX pays for
 * itself.
 */
export async function price(tron: Tron, task: Task): Promise<Priced | Wait | Fail> {
  if (task.sweeps && task.asset.type === 'native') return priceOwnSweep(tron, task)
  const { row, asset, amount } = task
  const parameters = await tron.parameters()
  const sun = priceOf(asset, parameters)
  if (row.fee_rate !== null && feeRateInteger(tron.network, row.fee_rate) < sun) {
    return fail(
      `fee_rate: the network's price is ${sun} Sun, and the transfer allows ${row.fee_rate}`,
    )
  }
  const [from, to] = [row.source_id as string, row.destination_id as string]
  let units: bigint
  let extra: bigint
  let worst: bigint
  let creates = false
  let feeLimit = 0n
  if (asset.type === 'native') {
    const { points, activation, cost } = await nativeCost(tron, to)
    units = points
    extra = activation
    worst = cost
    creates = activation > 0n
  } else {
    try {
      units = await tron.client.energy({ asset, from, to, amount })
    } catch (error) {
      if (error instanceof RpcReverted) return wouldRevert(row, error.message)
      throw error
    }
    feeLimit = tronBuild.feeLimitFor(units, sun)
    extra = tronBuild.transferBandwidth(feeLimit) * parameters.bandwidthSun
    worst = feeLimit + extra
  }
  const points = tronBuild.transferBandwidth(feeLimit)
  const own = await ownPoints(tron, row)
  // The fee limit is not reduced, because it also limits staked energy.
  const most = feeLimit / sun
  const energy = asset.type === 'native' ? 0n : own.energy < most ? own.energy : most
  // Stake covers the bandwidth completely or not at all.
  const bandwidth = own.bandwidth >= points && !creates ? points : 0n
  const loan =
    asset.type === 'native' || units <= energy
      ? null
      : await planLoan(tron, row, {
          missing: most - energy,
          burnt: (units - energy) * sun,
        })
  const need = worst - (loan ? most : energy) * sun - bandwidth * parameters.bandwidthSun
  return {
    kind: 'priced',
    need,
    worst: need,
    own: false,
    ...(energy + bandwidth > 0n ? { counted: own.mark } : {}),
    ...(loan ? { loan } : {}),
    plan: {
      fee_limit: feeLimit.toString(),
      need: need.toString(),
      energy_counted: (asset.type === 'native' ? 0n : most).toString(),
      bandwidth_counted: points.toString(),
      energy_spared: energy.toString(),
      bandwidth_spared: bandwidth.toString(),
    },
    fuel: await fuelFor(tron, from, { units, price: sun, extra }),
  }
}

/**
 * Returns the cost and plan of a fuel transaction. It also activates a source address that has
 * never held TRX. `units` are points at `price` sun, `extra` is in sun.
 */
export async function fuelFor(
  tron: Tron,
  from: string,
  o: { units: bigint; price: bigint; extra: bigint },
): Promise<Priced['fuel']> {
  const { cost } = await nativeCost(tron, from)
  return {
    cost,
    plan: {
      fee_limit: '0',
      need: cost.toString(),
      for_gas: o.units.toString(),
      for_max_fee_per_gas: o.price.toString(),
      for_l1_fee: o.extra.toString(),
    },
  }
}

/**
 * Plans a sweep of TRX. The address's own free bandwidth covers most sweeps, and then no fee is
 * reserved.
 */
async function priceOwnSweep(tron: Tron, { row }: Task): Promise<Priced> {
  const from = row.source_id as string
  const { points, activation, cost } = await nativeCost(tron, row.destination_id as string)
  const carried = await isCarriedFree(tron, from, points)
  // Other transactions of the address may use its free bandwidth first.
  const other = await tron.database.one(
    `select 1 from transactions
     where workspace_id = $4 and network = $1 and source_id = $2 and status = 'pending' and id <> $3
       limit 1`,
    [row.network, from, row.id, row.workspace_id],
  )
  const need = activation === 0n && !other && carried ? 0n : cost
  return {
    kind: 'priced',
    need,
    worst: cost,
    own: true,
    plan: { fee_limit: '0', need: need.toString(), own: '1' },
    fuel: { cost: 0n, plan: {} },
  }
}
