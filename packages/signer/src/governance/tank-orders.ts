import { validateAddress, type Registry } from '@custody/chains'
import {
  blockedKeys,
  countQuorum,
  LIMITS,
  orderApproval,
  type OrderAction,
  type TankOrder,
} from '@custody/policy'
import { Refusal } from '../errors.ts'
import type { State } from '../store/state.ts'
import type { DrainOrder, TankStakeOrder } from '../store/state-content.ts'
import type { Held } from './held.ts'
import { orderApprovalsOnRecord } from './standing.ts'

/** @throws Refusal `NETWORK_MISMATCH` if this node no longer has the network */
function nativeOf(registry: Registry, code: string) {
  const network = registry.network(code)
  if (!network)
    throw new Refusal('NETWORK_MISMATCH', `The network ${code} is not in this node's registry`)
  const { native_asset: asset } = network
  return { network: code, asset, decimals: registry.asset(asset)!.decimals }
}

/** Returns what people approve of an order to drain a gas tank. */
export function drainToApprove(registry: Registry, drain: DrainOrder): TankOrder {
  const native = nativeOf(registry, drain.network)
  const to = validateAddress(registry, native.asset, drain.to_address)
  if (!to.valid) throw new Refusal('BAD_REQUEST_FIELD', `to_address: ${to.reason}`)
  return {
    order: drain.order,
    action: 'drain',
    facts: { ...native, amount: null, to: to.address, tag: to.address_tag, resource: null },
  }
}

/**
 * Returns what people approve of an order about the stake of a gas tank. Null for an unstake and a
 * release, which only return coins to the tank.
 */
export function stakeToApprove(registry: Registry, stake: TankStakeOrder): TankOrder | null {
  const { order, action, network, amount, resource } = stake
  if (action !== 'stake') return null
  return {
    order,
    action: 'tank-stake',
    facts: { ...nativeOf(registry, network), amount, to: null, tag: null, resource },
  }
}

/** Returns the name of the step of an order, which is signed once. */
export const stepOfOrder = (action: OrderAction, order: string): string =>
  JSON.stringify([action, order])

/** Returns whether an order lacks approvals and has not been signed yet. @param now_s Unix seconds */
export function awaitsApproval(
  held: Held,
  { steps }: State,
  order: TankOrder,
  now_s: number,
): boolean {
  const recorded = steps.get(stepOfOrder(order.action, order.order)) ?? []
  return !recorded.some(({ signed }) => signed) && lacksOrderApproval(held, order, now_s)
}

/**
 * Returns whether an order lacks the approvals that the document in force requires. An approval counts
 * for seven days, like an order, whenever the operators of other nodes enter the order.
 * @param now_s Unix seconds
 */
export function lacksOrderApproval(held: Held, order: TankOrder, now_s: number): boolean {
  const { governance, approved } = held
  const required = governance?.policy.document.orders
  if (required === undefined) return false
  const { policy } = governance!
  const blocked = blockedKeys(governance!)
  return !orderApprovalsOnRecord(held, approved, orderApproval(policy, order)).some((approvals) => {
    const signers = approvals
      .filter(({ at }) => now_s < at + LIMITS.statementS)
      .map(({ by: person, key }) => ({ person, key }))
    return countQuorum(policy, required.approvals, signers, blocked).isMet
  })
}

/**
 * Checks that people have approved an order, if the document in force requires it.
 * @throws Refusal `ORDER_APPROVAL`
 */
export function assertOrderApproved(held: Held, order: TankOrder, now_s: number): void {
  if (lacksOrderApproval(held, order, now_s))
    throw new Refusal(
      'ORDER_APPROVAL',
      `The order ${order.order} requires approvals by the policy of the workspace: use "policy approve-order"`,
    )
}
