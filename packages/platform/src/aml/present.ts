import { z } from 'zod'
import { warningOf } from './levels.ts'
import type { AmlRow } from './policy.ts'

const SHOWN_LEAST = 16

export const amlShape = z
  .object({
    provider: z.string(),
    aml_token: z.string().meta({ description: 'The token, masked' }),
    aml_risk_levels: z.string(),
    aml_deposit: z.boolean(),
    aml_withdrawal: z.boolean(),
    updated_at: z.string(),
    warning: z.string().nullable().meta({
      description:
        'Warning, present if a level passes although a lower level is held; otherwise null',
    }),
  })
  .meta({ id: 'AmlSettings' })

/**
 * Nothing of a short token is shown; of a longer one its last four characters, to tell two apart.
 */
function maskToken(token: string): string {
  return `****${token.length >= SHOWN_LEAST ? token.slice(-4) : ''}`
}

export function presentAml(row: Omit<AmlRow, 'sealed_token'>, token: string) {
  return {
    provider: row.provider,
    aml_token: maskToken(token),
    aml_risk_levels: row.risk_levels.join(', '),
    aml_deposit: row.screen_deposits,
    aml_withdrawal: row.screen_withdrawals,
    updated_at: row.updated_at.toISOString(),
    warning: warningOf(row.risk_levels),
  }
}
