import { TANK_SUB_ACCOUNT } from '@custody/chains'
import { stakeToApprove, stepOfOrder } from '../../governance/tank-orders.ts'
import { decodedOn, networkNamed, verdictOf, type Context } from '../context.ts'
import type { Order, TankStake, Verdict } from '../order.ts'
import { assertOnlyPath } from '../paths.ts'
import { assertTankStakes, tankStakeOrder } from '../tank.ts'

/**
 * Rule 15: permits a transaction about a gas tank's own stake, as ordered by this node's operator. A
 * stake must also be approved by people if a policy requires it.
 */
export async function tankStake(
  context: Context,
  order: Order,
  purpose: TankStake,
): Promise<Verdict> {
  const wanted = tankStakeOrder(context.store.state, order, purpose.order, context.store.seconds())
  const network = networkNamed(context, wanted.network)
  assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
  const subject = await decodedOn(context, order, network)
  assertTankStakes(subject, wanted)
  return verdictOf(subject, {
    step: stepOfOrder('tank-stake', wanted.order),
    repeatable: false,
    serves: [],
    ordered: stakeToApprove(context.registry, wanted),
  })
}
