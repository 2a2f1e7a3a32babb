import { addressAt, OMNIBUS_INDEX, TANK_SUB_ACCOUNT } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { StakeCall } from '../intent/stake.ts'
import type { State, TankStakeOrder } from '../store/state.ts'
import { assertFeeCap } from './cap.ts'
import type { Lend, Order, Subject } from './order.ts'

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

export function assertTankStakes(subject: Subject, stake: TankStakeOrder): void {
  const action = assertCall(subject, CALLS[stake.action])
  if (action.resource !== stake.resource)
    throw new Refusal(
      'RESOURCE_MISMATCH',
      'The resource of the transaction differs from the approved resource',
    )
  if (action.amount !== BigInt(stake.amount))
    throw new Refusal(
      'AMOUNT_MISMATCH',
      'The amount of the transaction differs from the approved amount',
    )
  assertFeeCap(subject)
}

/**
 * Rule 11: energy of the tank's stake for one intent or sweep, to its source address, and back.
 * Lending spends nothing, and a node that queries no chain cannot convert energy to an amount: the
 * stake remains the tank's, no matter who uses its energy.
 */
export function assertLends(subject: Subject, lend: Lend, source: readonly number[]): void {
  const action = assertCall(subject, lend.step)
  if (action.resource !== 'ENERGY')
    throw new Refusal('RESOURCE_MISMATCH', 'A tank can lend energy only')
  if (source[0] === TANK_SUB_ACCOUNT && source[2] === OMNIBUS_INDEX) {
    throw new Refusal('DESTINATION_MISMATCH', 'A tank cannot lend to itself')
  }
  if (action.receiver !== addressAt(subject.network, subject.key, source)) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      'Energy must be lent to the source address of the transfer that it is for',
    )
  }
  assertFeeCap(subject)
}

function assertCall({ decoded }: Subject, kind: StakeCall['kind']): StakeCall {
  const { action } = decoded
  if (!action || decoded.payments.length > 0)
    throw new Refusal('SHAPE', 'The transaction must stake, and must not make a payment')
  if (action.kind !== kind)
    throw new Refusal('SHAPE', `The transaction is a ${action.kind}, not a ${kind}`)
  return action
}
