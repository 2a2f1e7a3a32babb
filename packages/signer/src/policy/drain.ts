import { TANK_SUB_ACCOUNT, validateAddress, type Registry } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { DrainOrder, State } from '../store/state.ts'
import { assertCovered } from './gate/effects.ts'
import type { Covered, Order, Subject } from './order.ts'

/** Rule 15: returns the operator's order, which was entered at this node's own socket. */
export function drainOrder(state: State, order: Order, id: string, now: number): DrainOrder {
  const drain = state.drains.get(id)
  if (!drain) throw new Refusal('ORDER_UNKNOWN', 'This node has no such order from its operator')
  if (drain.workspace !== order.workspace)
    throw new Refusal('WORKSPACE_MISMATCH', 'The order belongs to another workspace')
  if (drain.network !== order.unsigned.network)
    throw new Refusal('NETWORK_MISMATCH', 'The order belongs to another network')
  if (now > drain.expires_at) throw new Refusal('ORDER_EXPIRED', 'The order has expired')
  return drain
}

/** Rule 15: one payment of the tank's coin to the address of the order. */
export function assertDrains(
  subject: Subject,
  registry: Registry,
  drain: DrainOrder,
): asserts subject is Covered {
  const asset = subject.network.native_asset
  const does = payeeOfOrder(registry, asset, drain.to_address)
  assertCovered(subject, { payer: TANK_SUB_ACCOUNT, does: { ...does, asset, amount: null } })
}

/**
 * Returns the destination of an operator's order.
 * @param asset whose addresses have the form of the destination
 * @throws Refusal `DESTINATION_MISMATCH` if it is not an address
 */
export function payeeOfOrder(
  registry: Registry,
  asset: string,
  address: string,
  tag?: string | null,
): { address: string; payee: string; tag: string | null } {
  const payee = "the destination of the operator's order"
  const to = validateAddress(registry, asset, address, tag)
  if (!to.valid) throw new Refusal('DESTINATION_MISMATCH', `The transaction must pay ${payee}`)
  return { address: to.address, payee, tag: to.address_tag }
}
