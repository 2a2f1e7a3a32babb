import { z } from 'zod'
import { MESSAGE_MAX, WORD_MAX } from '../../core/bounds.ts'
import { exact } from '../../core/decimals.ts'
import type { Replacement } from '../../core/engine/replacement.ts'

const KINDS = { SPEED_UP: 'speed-up', CANCEL: 'cancel', AUTO: 'automatic' } as const
const STATES = { PENDING: 'pending', FUELING: 'pending', DONE: 'done', REFUSED: 'refused' } as const

export const replacementShape = z
  .object({
    kind: z.enum(['speed-up', 'cancel', 'automatic']),
    state: z.enum(['pending', 'done', 'refused']),
    fee_rate: z.number().min(0).nullable(),
    fee_level: z.string().max(WORD_MAX).nullable(),
    reason: z.string().max(MESSAGE_MAX).nullable(),
    created_at: z.string(),
  })
  .meta({ id: 'Replacement' })

export function presentReplacement(row: Replacement) {
  return {
    kind: KINDS[row.kind],
    state: STATES[row.state],
    fee_rate: row.fee_rate === null ? null : exact(row.fee_rate),
    fee_level: row.fee_level,
    reason: row.reason,
    created_at: row.created_at.toISOString(),
  }
}
