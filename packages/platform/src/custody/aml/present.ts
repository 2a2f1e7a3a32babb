import { z } from 'zod'
import { MESSAGE_MAX, NAME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { exactUsd } from '../../core/decimals.ts'
import { warningOf } from './levels.ts'
import type { AmlRow } from './policy.ts'

const SHOWN_LEAST = 16
/** Largest accepted value in USD of a deposit with an unknown sender that is not held. */
export const USD_MAX = 1_000_000

export const amlShape = z
  .object({
    provider: z.string().max(WORD_MAX),
    aml_token: z.string().max(NAME_MAX).meta({ description: 'The token, masked' }),
    aml_risk_levels: z.string().max(WORD_MAX),
    aml_deposit: z.boolean(),
    aml_withdrawal: z.boolean(),
    aml_unknown_sender_usd: z.number().min(0).max(USD_MAX),
    updated_at: z.string(),
    warning: z.string().max(MESSAGE_MAX).nullable().meta({
      description:
        'Warning, present if a level passes although a lower level is held; otherwise null',
    }),
  })
  .meta({ id: 'AmlSettings' })

/**
 * Masks a token. Nothing of a short token is shown, and only the last four characters of a longer
 * one, to tell two tokens apart.
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
    aml_unknown_sender_usd: exactUsd(BigInt(row.unknown_sender_usd)),
    updated_at: row.updated_at.toISOString(),
    warning: warningOf(row.risk_levels),
  }
}
