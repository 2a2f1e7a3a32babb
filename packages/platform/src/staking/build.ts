import { tron as tronBuild, type Network } from '@custody/chains'
import type { Services } from '../engine/services.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { startFailing } from '../engine/fail.ts'
import { startFuelling } from '../gas-tanks/fuelling.ts'
import { nativeCost } from '../families/tron/plan.ts'
import { advance } from '../engine/lease.ts'
import { lendableAfter, MATURED_FIRST, receiverRefusal, TOO_MANY, unstakeRefusal } from './chain.ts'
import { othersRely } from '../families/tron/counted.ts'
import { receiverStops } from './receiver.ts'
import { actionOf, stakingOf, type Staking } from './steps.ts'

const OTHERS_RETRY_MS = 2000

/** QUEUED → FUELING: bandwidth of all its steps comes from the tank, at once. */
export async function buildStaking(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const staking = stakingOf(row) as Staking
  const refusal = await stepRefusal(services, row, network, staking)
  if (refusal) return services.database.transaction((tx) => startFailing(services, tx, row, refusal))
  if (staking.kind === 'UNSTAKE' && staking.account === staking.address && await othersRely(services.database, row, staking)) {
    return advance(services.database, row, { last_error: 'transfers under way count on this resource', run_in_ms: OTHERS_RETRY_MS })
  }
  const parameters = await services.networks.tronParameters(network.code)
  const points = staking.steps.reduce((sum, step) => sum + tronBuild.actionBandwidth(step), 0n)
  const need = points * parameters.bandwidthSun
  const fuel = await nativeCost(services, network, parameters, staking.account)
  await startFuelling(services, row, network, {
    need, worst: need, fields: { fee_limit: '0', need: need.toString(), step: '0', fees_paid: '0', bandwidth_counted: (BigInt(row.plan['bandwidth_counted'] ?? '0') + points).toString() }, cost: fuel.cost,
    fuelFields: { fee_limit: '0', need: fuel.cost.toString(), for_gas: points.toString(), for_max_fee_per_gas: parameters.bandwidthSun.toString(), for_l1_fee: '0' },
  })
}

/** Why the chain, or our own rules, do not take the step under way now; null: they do. Signed, it could only die. */
export async function stepRefusal(services: Services, row: TransactionRow, network: Network, staking: Staking): Promise<string | null> {
  const client = services.networks.tron(network.code)
  const { account, address, resource, amount } = staking
  const { kind } = actionOf(staking)
  switch (kind) {
    case 'freeze':
      return null
    case 'delegate': {
      const stops = await receiverStops(services, services.database, row.sub_account_id as string, network, address)
      if (stops) return `address: is ${stops}`
      const refusal = await receiverRefusal(client, address)
      if (refusal) return `address: ${refusal}`
      return resource !== null && await lendableAfter(client, account, resource, 0n) < amount ? "the chain lends no stake that today's use rests on, and too little else is staked" : null
    }
    case 'undelegate': {
      const lent = resource === null ? 0n : (await client.delegated(account, address))[resource]
      return lent < amount ? 'the chain knows no such delegation' : null
    }
    case 'unfreeze': {
      const refusal = await unstakeRefusal(client, account, 0)
      return refusal === 'matured' ? MATURED_FIRST : refusal === 'limit' ? TOO_MANY : null
    }
    case 'withdraw':
      return await client.withdrawable(account) === 0n ? 'the chain has nothing to release' : null
  }
}
