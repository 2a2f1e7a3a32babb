import { traitsOf, validateAddress } from '@custody/chains'
import { z } from 'zod'
import { hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { NodeContext } from '../node-context.ts'
import { DAY_S } from '../policy/age.ts'
import { shaped } from '../transport/body.ts'

const drainSchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  network: z.string().max(32),
  to_address: z.string().max(256),
  order: z.string().min(1).max(64).optional(),
})

const tankStakeSchema = z
  .strictObject({
    workspace: z.string().min(1).max(128),
    network: z.string().max(32),
    action: z.enum(['stake', 'unstake', 'release']),
    resource: z.enum(['ENERGY', 'BANDWIDTH']).nullable(),
    amount: z.string().regex(/^(0|[1-9][0-9]{0,18})$/),
    order: z.string().min(1).max(64).optional(),
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
 * Rule 15: records an order to drain a tank. Each node receives the same `order` ID; if it is
 * missing the node generates one. Returns what was recorded.
 */
export function drain(
  { config, store, registry, environment }: NodeContext,
  body: unknown,
): unknown {
  const { workspace, network: code, to_address, order } = shaped(drainSchema, body)
  const network = registry.network(code)
  if (!network)
    throw new Refusal('NETWORK_MISMATCH', `The network ${code} is not in this node's registry`)
  const to = validateAddress(registry, network.native_asset, to_address)
  if (!to.valid) throw new Refusal('BAD_REQUEST_FIELD', `to_address: ${to.reason}`)
  const id = order ?? hex(environment.random(16))
  const existing = store.state.drains.get(id)
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
  return { node: config.node, ...written }
}

/**
 * Rule 15: records an order about the stake of a tank. Amount in the smallest unit. Returns what
 * was recorded.
 */
export function tankStake(
  { config, store, registry, environment }: NodeContext,
  body: unknown,
): unknown {
  const { order, ...wanted } = shaped(tankStakeSchema, body)
  const network = registry.network(wanted.network)
  if (!network || !traitsOf(network).staking)
    throw new Refusal('NETWORK_MISMATCH', `${wanted.network} has no staking`)
  const id = order ?? hex(environment.random(16))
  const existing = store.state.tankStakes.get(id)
  if (
    existing &&
    (Object.keys(wanted) as (keyof typeof wanted)[]).some((name) => wanted[name] !== existing[name])
  ) {
    throw new Refusal('ENROLMENT_CONFLICT', 'This order id belongs to another order')
  }
  const written = existing ?? { order: id, ...wanted, expires_at: store.seconds() + ORDER_S }
  if (!existing) store.append('tank-stake', { ...written })
  return { node: config.node, ...written }
}
