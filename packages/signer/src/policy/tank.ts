import { addressAt, OMNIBUS_INDEX, TANK_SUB_ACCOUNT } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { StakeCall } from '../intent/stake.ts'
import type { State, TankStakeOrder } from '../store/state.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Lend, Order, Subject } from './order.ts'

const CALLS: Record<TankStakeOrder['action'], StakeCall['kind']> = {
  stake: 'freeze',
  unstake: 'unfreeze',
  release: 'withdraw',
}

/**
 * Rule 15: staking for a gas tank is the operator's order, which was entered at this node's own
 * socket.
 */
export function tankStakeOrder(
  state: State,
  order: Order,
  id: string,
  now: number,
): TankStakeOrder {
  const stake = state.tankStakes.get(id)
  if (!stake) throw new Refusal('ORDER_UNKNOWN', 'This node has no such order from its operator')
  if (stake.workspace !== order.workspace)
    throw new Refusal('WORKSPACE_MISMATCH', 'The order belongs to another workspace')
  if (stake.network !== order.unsigned.network)
    throw new Refusal('NETWORK_MISMATCH', 'The order belongs to another network')
  if (now > stake.expires_at) throw new Refusal('ORDER_EXPIRED', 'The order has expired')
  return stake
}

/** Rule 15: exactly the staking that the operator ordered. */
export function assertTankStakes(
  subject: Subject,
  { action, resource, amount }: TankStakeOrder,
): asserts subject is Covered {
  assertCovered(subject, {
    payer: TANK_SUB_ACCOUNT,
    does: { kind: CALLS[action], resource, amount: BigInt(amount), receiver: null },
  })
}

/**
 * Rule 11: energy of the tank's stake for one intent or sweep, to its source address, and back.
 * Lending spends nothing, and a node that queries no chain cannot convert energy to an amount: the
 * stake remains the tank's, no matter who uses its energy.
 */
export function assertLends(
  subject: Subject,
  lend: Lend,
  source: readonly number[],
): asserts subject is Covered {
  if (source[0] === TANK_SUB_ACCOUNT && source[2] === OMNIBUS_INDEX) {
    throw new Refusal('DESTINATION_MISMATCH', 'A tank cannot lend to itself')
  }
  const receiver = addressAt(subject.network, subject.key, source)
  assertCovered(subject, {
    payer: TANK_SUB_ACCOUNT,
    does: { kind: lend.step, resource: 'ENERGY', amount: null, receiver },
  })
}
