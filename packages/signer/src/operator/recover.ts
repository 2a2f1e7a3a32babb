import { validateAddress } from '@custody/chains'
import { z } from 'zod'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { NodeContext } from '../node-context.ts'
import { DAY_S } from '../policy/age.ts'
import { orderSchema } from '../policy/order.ts'
import { shaped } from '../transport/body.ts'

const recoverSchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  network: z.string().max(32),
  to_address: z.string().max(256),
  tag: z.string().max(256).nullable().default(null),
  fee_max: z.string().regex(/^[1-9][0-9]{0,77}$/),
})

/** Validity of a recovery order, in seconds. */
const ORDER_S = 7 * DAY_S

function assertRecovering({ store }: NodeContext): void {
  if (store.state.recovering) return
  throw new Refusal(
    'NOT_ALLOWED',
    'This node serves a platform: recovery orders require a node that was opened for recovery',
  )
}

/**
 * Rule 16: records where all funds of a workspace on a network are sent, as entered by this node's
 * own operator. The ID of the order is derived from its content, so that two operators who entered
 * the same values have the same order. Returns what was recorded.
 */
export function recover(parts: NodeContext, body: unknown): unknown {
  assertRecovering(parts)
  const { config, store, registry } = parts
  const wanted = shaped(recoverSchema, body)
  const network = registry.network(wanted.network)
  if (!network)
    throw new Refusal(
      'NETWORK_MISMATCH',
      `The network ${wanted.network} is not in this node's registry`,
    )
  const to = validateAddress(registry, network.native_asset, wanted.to_address, wanted.tag)
  if (!to.valid) throw new Refusal('BAD_REQUEST_FIELD', `to_address: ${to.reason}`)
  const said = {
    workspace: wanted.workspace,
    network: network.code,
    to_address: to.address,
    tag: to.address_tag,
    fee_max: wanted.fee_max,
  }
  const order = sha256hex(JSON.stringify(Object.values(said))).slice(0, 32)
  const existing = store.state.recoveries.get(order)
  const written =
    existing && existing.expires_at > store.seconds()
      ? existing
      : { order, ...said, expires_at: store.seconds() + ORDER_S }
  if (written !== existing) store.append('recover', { ...written })
  return { node: config.node, ...written }
}

const signSchema = orderSchema.extend({ partner: z.int().min(1).max(3) })

/**
 * Signs one transaction of a recovery with a partner. The operator calls this, because there is no
 * platform.
 */
export async function recoverSign(parts: NodeContext, body: unknown): Promise<unknown> {
  assertRecovering(parts)
  const { partner, ...order } = shaped(signSchema, body)
  return (await parts.coordinator.sign(order, partner, null)).signed
}
