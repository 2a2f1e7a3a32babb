import { tron as tronBuild } from '@custody/chains'
import {
  stakesOf,
  wait,
  type Chain,
  type Priced,
  type Task,
  type Wait,
} from '../../core/engine/chain.ts'
import { othersRely } from '../../core/engine/counted.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../aml/aml.ts'
import { lendableAfter, MATURED_FIRST, receiverRefusal, TOO_MANY, unstakeRefusal } from './chain.ts'
import { receiverStops } from './receiver.ts'
import { actionOf, stakingOf } from './steps.ts'

interface Services {
  database: Database
  aml: Aml
}

const OTHERS_RETRY_MS = 2000

/**
 * Prices a staking transaction. The bandwidth cost of all its steps is taken from the tank in one
 * amount.
 */
export async function priceStaking(
  { database }: Pick<Services, 'database'>,
  chain: Chain,
  { row }: Task,
): Promise<Priced | Wait> {
  const staking = stakingOf(row)
  if (
    staking.kind === 'UNSTAKE' &&
    staking.account === staking.address &&
    (await othersRely(database, row, staking.resource))
  ) {
    return wait('EARLIER_TRANSFER', 'transfers in progress rely on this resource', OTHERS_RETRY_MS)
  }
  const stakes = stakesOf(chain)
  const points = staking.steps.reduce((sum, step) => sum + tronBuild.actionBandwidth(step), 0n)
  const need = points * (await stakes.parameters()).bandwidthSun
  const counted = BigInt(row.plan.bandwidth_counted ?? '0') + points
  return {
    kind: 'priced',
    need,
    worst: need,
    own: false,
    plan: {
      fee_limit: '0',
      need: need.toString(),
      step: '0',
      fees_paid: '0',
      bandwidth_counted: counted.toString(),
    },
    fuel: await stakes.fuelFor(staking.account, points),
  }
}

/**
 * Returns why the chain or our own rules would refuse the current step, so that it is not signed;
 * null if they would not.
 */
export async function stepRefusal(
  services: Services,
  chain: Chain,
  { row }: Task,
): Promise<string | null> {
  const { client } = stakesOf(chain)
  const staking = stakingOf(row)
  const { account, address, resource, amount } = staking
  const { kind } = actionOf(staking)
  switch (kind) {
    case 'freeze':
      return null
    case 'delegate': {
      const owner = { workspaceId: row.workspace_id, subAccountId: row.sub_account_id as string }
      const stops = await receiverStops(services, services.database, owner, chain.network, address)
      if (stops) return `address: is ${stops}`
      const refusal = await receiverRefusal(client, address)
      if (refusal) return `address: ${refusal}`
      const lendable =
        resource === null ? amount : await lendableAfter(client, account, resource, 0n)
      return lendable < amount
        ? 'the chain does not lend stake whose resource was used today, and the remaining stake is too small'
        : null
    }
    case 'undelegate': {
      const lent = resource === null ? 0n : (await client.delegated(account, address))[resource]
      return lent < amount ? 'the chain has no delegation of this resource to this address' : null
    }
    case 'unfreeze': {
      const refusal = await unstakeRefusal(client, account, 0)
      return refusal === 'matured' ? MATURED_FIRST : refusal === 'limit' ? TOO_MANY : null
    }
    case 'withdraw':
      return (await client.withdrawable(account)) === 0n ? 'the chain has nothing to release' : null
  }
}
