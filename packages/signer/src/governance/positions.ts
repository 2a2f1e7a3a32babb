import { z } from 'zod'
import { count } from '../store/entries/values.ts'

/** Position in a node's record up to which another node has read the items. */
export const positionSchema = z.strictObject({ generation: count, height: count })
export type Position = z.infer<typeof positionSchema>
export const pingSchema = z.object({ policy: positionSchema.optional() })
/**
 * What a node sends its partner with an order and with its answer: its position, and the hash of the
 * policy in force for the order's workspace, or null if there is none.
 */
export const policyToldSchema = z.strictObject({
  position: positionSchema,
  hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
})
export type PolicyTold = z.infer<typeof policyToldSchema>
