import { traitsOf, validateAddress } from '@custody/chains'
import type { TankOrder } from '@custody/policy'
import { z } from 'zod'
import { hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { awaitsApproval, drainToApprove, stakeToApprove } from '../governance/tank-orders.ts'
import type { NodeContext } from '../node-context.ts'
import { DAY_S } from '../policy/age.ts'
import type { TankStakeOrder } from '../store/state.ts'
import { shaped } from '../transport/body.ts'

/** ID of an order, as people read it and approve it. */
const orderId = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/)

const drainSchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  network: z.string().max(32),
  to_address: z.string().max(256),
  order: orderId.optional(),
})

const tankStakeSchema = z
  .strictObject({
    workspace: z.string().min(1).max(128),
    network: z.string().max(32),
    action: z.enum(['stake', 'unstake', 'release']),
    resource: z.enum(['ENERGY', 'BANDWIDTH']).nullable(),
    amount: z.string().regex(/^(0|[1-9][0-9]{0,18})$/),
    order: orderId.optional(),
  })
  .refine(
    (body) =>
      (body.action === 'release') === (body.resource === null) &&
      (body.action === 'release') === (body.amount === '0'),
    'a release must have neither resource nor amount',
  )

/** Validity of an order about a tank, in seconds. */
const ORDER_S = 7 * DAY_S

/**
 * Returns whether an order signs nothing until people approve it. If the node cannot read the policy of
 * the workspace, it signs nothing either.
 */
function needsApproval(
  { governance, store }: NodeContext,
  workspace: string,
  order: TankOrder | null,
): boolean {
  if (order === null) return false
  try {
    const held = governance.policies.held(workspace)
    return awaitsApproval(held, store.state, order, store.seconds())
  } catch (error) {
    if (error instanceof Refusal) return true
    throw error
  }
}

/**
 * Rule 15: records an order to drain a tank. Each node receives the same `order` ID; if it is
 * missing the node generates one. Returns what was recorded.
 */
export function drain(parts: NodeContext, body: unknown): unknown {
  const { config, store, registry, environment } = parts
  const { workspace, network: code, to_address, order } = shaped(drainSchema, body)
  const network = registry.network(code)
  if (!network)
    throw new Refusal('NETWORK_MISMATCH', `The network ${code} is not in this node's registry`)
  const to = validateAddress(registry, network.native_asset, to_address)
  if (!to.valid) throw new Refusal('BAD_REQUEST_FIELD', `to_address: ${to.reason}`)
  if (to.address_tag !== null)
    throw new Refusal('BAD_REQUEST_FIELD', 'to_address: must not contain a tag')
  const id = order ?? hex(environment.random(16))
  const existing = store.state.drains.get(id)
  if (store.state.tankStakes.has(id))
    throw new Refusal('ENROLMENT_CONFLICT', 'This order id belongs to an order about a stake')
  if (
    existing &&
    (existing.workspace !== workspace ||
      existing.network !== code ||
      existing.to_address !== to.address)
  ) {
    throw new Refusal('ENROLMENT_CONFLICT', 'This order id belongs to another drain')
  }
  const written = existing ?? {
    order: id,
    workspace,
    network: code,
    to_address: to.address,
    expires_at: store.seconds() + ORDER_S,
  }
  if (!existing) store.append('drain', { ...written })
  const needs_approval = needsApproval(parts, workspace, drainToApprove(registry, written))
  return { node: config.node, ...written, needs_approval }
}

/**
 * Rule 15: records an order about the stake of a tank. Amount in the smallest unit. Returns what
 * was recorded.
 */
export function tankStake(parts: NodeContext, body: unknown): unknown {
  const { config, store, registry, environment } = parts
  const { order, ...wanted } = shaped(tankStakeSchema, body)
  const network = registry.network(wanted.network)
  if (!network || !traitsOf(network).staking)
    throw new Refusal('NETWORK_MISMATCH', `${wanted.network} has no staking`)
  const id = order ?? hex(environment.random(16))
  const existing = store.state.tankStakes.get(id)
  if (store.state.drains.has(id))
    throw new Refusal('ENROLMENT_CONFLICT', 'This order id belongs to a drain')
  if (
    existing &&
    (Object.keys(wanted) as (keyof typeof wanted)[]).some((name) => wanted[name] !== existing[name])
  ) {
    throw new Refusal('ENROLMENT_CONFLICT', 'This order id belongs to another order')
  }
  const written = existing ?? { order: id, ...wanted, expires_at: store.seconds() + ORDER_S }
  if (!existing) store.append('tank-stake', { ...written })
  const needs_approval = needsApproval(parts, written.workspace, stakeToApprove(registry, written))
  return { node: config.node, ...written, needs_approval }
}

const orderSchema = z.strictObject({ order: z.string().min(1).max(64) })

/**
 * Returns an order about a tank as this node has it, with what people approve of it: null for an
 * unstake or a release.
 */
export function order(parts: NodeContext, body: unknown): unknown {
  const { config, store, registry } = parts
  const { order: id } = shaped(orderSchema, body)
  const [drained, staked] = [store.state.drains.get(id), store.state.tankStakes.get(id)]
  const found = drained ?? staked
  if (!found) throw new Refusal('ORDER_UNKNOWN', 'This node has no such order from its operator')
  const toApprove = drained
    ? drainToApprove(registry, drained)
    : stakeToApprove(registry, staked as TankStakeOrder)
  const { workspace, expires_at } = found
  const needs_approval = needsApproval(parts, workspace, toApprove)
  return {
    node: config.node,
    order: id,
    workspace,
    expires_at,
    to_approve: toApprove,
    needs_approval,
  }
}
