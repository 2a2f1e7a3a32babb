import { TANK_SUB_ACCOUNT } from '@custody/chains'
import { decodedOn, networkNamed, verdictOf, type Bench } from '../bench.ts'
import type { Order, TankStake, Verdict } from '../order.ts'
import { assertOnlyPath } from '../paths.ts'
import { assertTankStakes, tankStakeOrder } from '../tank.ts'

/** Rule 15: a gas tank's own stake, as this node's operator said. */
export async function tankStake(bench: Bench, order: Order, purpose: TankStake): Promise<Verdict> {
  const wanted = tankStakeOrder(bench.store.state, order, purpose.order, bench.store.seconds())
  const network = networkNamed(bench, wanted.network)
  assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
  const subject = await decodedOn(bench, order, network)
  assertTankStakes(subject, wanted)
  return verdictOf(subject, { step: JSON.stringify(['tank-stake', wanted.order]), repeatable: false })
}
