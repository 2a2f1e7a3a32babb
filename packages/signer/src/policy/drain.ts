import { validateAddress, type Registry } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { DrainOrder, State } from '../store/state.ts'
import { assertFeeCap } from './cap.ts'
import type { Order, Subject } from './order.ts'

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

export function assertDrains(subject: Subject, registry: Registry, drain: DrainOrder): void {
  const { decoded, network } = subject
  if (decoded.asset !== network.native_asset)
    throw new Refusal('ASSET_MISMATCH', 'A drain must move the native coin')
  const [payment, more] = decoded.payments
  if (!payment || more) throw new Refusal('SHAPE', 'The transaction must make exactly one payment')
  const to = validateAddress(registry, network.native_asset, drain.to_address)
  if (!to.valid || payment.address !== to.address) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      "The transaction pays another address than the operator's order",
    )
  }
  if (payment.tag !== to.address_tag)
    throw new Refusal('TAG_MISMATCH', 'The tag of the transaction differs from the approved tag')
  assertFeeCap(subject)
}
