import { ORDER_SKEW_MS } from '@custody/request-auth/orders'
import { z } from 'zod'
import { canonicalBytes, signBytes } from '../canonical.ts'
import type { NodeContext } from '../node-context.ts'
import { RUN_MAX } from '../store/entries/values.ts'

/** `until`: Unix milliseconds of the platform's clock. */
export const withdrawBodySchema = z.strictObject({
  hashes: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .max(RUN_MAX),
  until: z.int().min(0),
})

const KEYS = ['node', 'hashes', 'until', 'signed', 'complete_since'] as const

/**
 * Withdraws orders: this node signs none of the transactions by an order that the platform issued until
 * then. The signed answer names those of which a signature may exist, and the time (Unix ms) since which
 * this node knows all that it has signed: 0, or that of its last restoration.
 */
export function withdraw(
  { store, config, environment }: Pick<NodeContext, 'store' | 'config' | 'environment'>,
  body: z.infer<typeof withdrawBodySchema>,
): Record<string, unknown> {
  const { ordered, notBefore } = store.state
  const until = Math.min(body.until, environment.now() + ORDER_SKEW_MS)
  const { hashes } = body
  const signed = hashes.filter((hash) => ordered.isBound(hash))
  const open = hashes.filter((hash) => !signed.includes(hash) && !ordered.isWithdrawn(hash, until))
  if (open.length > 0) store.append('withdrawn', { hashes: open, until })
  const statement = { node: config.node, hashes, until, signed, complete_since: notBefore }
  return {
    statement,
    signature: signBytes(config.identity, canonicalBytes('orderWithdrawn', KEYS, statement)),
  }
}
