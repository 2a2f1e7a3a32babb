import { z } from 'zod'
import type { NodeContext } from '../node-context.ts'
import type { BanStatement } from '../store/entries/people.ts'
import { shaped } from '../transport/body.ts'

const banSchema = z.strictObject({
  node: z.int().min(1).max(3),
  reason: z.string().min(1).max(200).default('ordered by the operator'),
})

/**
 * Bans a peer permanently, with the same effect as a proven cheat. Returns the ban on record, which
 * is the earlier ban if there was one.
 */
export function ban({ config, bans: all }: NodeContext, body: unknown): unknown {
  const { node, reason } = shaped(banSchema, body)
  const { at, reason: why, cause, identity } = all.order(node, reason)
  return { node: config.node, banned: node, identity, at, reason: why, cause }
}

/** Returns this node's own bans, and the bans that its peers have reported. */
export function bans({ store }: NodeContext): unknown {
  const reports = store.state.banReports.map(
    ({ signature: _signature, ...statement }): BanStatement => statement,
  )
  return { bans: store.state.bans.map(({ height: _height, ...each }) => each), reports }
}
