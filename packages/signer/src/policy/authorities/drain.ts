import { TANK_SUB_ACCOUNT } from '@custody/chains'
import { drainToApprove, stepOfOrder } from '../../governance/tank-orders.ts'
import { decodedOn, networkNamed, verdictOf, type Context } from '../context.ts'
import { assertDrains, drainOrder } from '../drain.ts'
import type { Drain, Order, Verdict } from '../order.ts'
import { assertOnlyPath } from '../paths.ts'

/**
 * Rule 15: permits a payment from a gas tank to the address that this node's operator has entered, and
 * people have approved if a policy requires it.
 */
export async function drain(context: Context, order: Order, purpose: Drain): Promise<Verdict> {
  const { registry, store } = context
  const wanted = drainOrder(store.state, order, purpose.order, store.seconds())
  const network = networkNamed(context, wanted.network)
  assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
  const subject = await decodedOn(context, order, network)
  assertDrains(subject, registry, wanted)
  return verdictOf(subject, {
    step: stepOfOrder('drain', wanted.order),
    repeatable: false,
    serves: [],
    ordered: drainToApprove(registry, wanted),
  })
}
