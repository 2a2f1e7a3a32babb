import { ChainError, parseAmount } from '@custody/chains'
import { emptyBody, speedUpBody } from '@custody/request-auth/bodies'
import { sha256hex } from '../canonical.ts'
import type { AmendAction } from './actions.ts'
import { badField, bodyOf } from './fields.ts'
import { FEE_RATE_DECIMALS } from './pay.ts'
import type { Proven } from './request.ts'

/** A signed request about an earlier one: increase its fee, or cancel it. */
export interface AmendIntent {
  action: 'speed-up' | 'cancel'
  /**
   * Public ID of the transfer. It is the hash of the transfer's own signed request, so the request
   * cannot be used against another transfer.
   */
  transaction_id: string
  /** The new limit, scaled by 10^FEE_RATE_DECIMALS; null: the node's own cap. */
  fee_rate: string | null
  key: string
  content: string
}

export function amendIntent(proven: Proven, action: AmendAction): AmendIntent {
  const body =
    action.name === 'cancel'
      ? { ...bodyOf(proven, emptyBody), fee_level: undefined, fee_rate: undefined }
      : bodyOf(proven, speedUpBody)
  const level = body.fee_level ?? null
  let feeRate: string | null = null
  try {
    if (body.fee_rate !== undefined)
      feeRate = parseAmount(body.fee_rate, FEE_RATE_DECIMALS).toString()
  } catch (error) {
    if (error instanceof ChainError) throw badField('fee_rate', error.message)
    throw error
  }
  const key = JSON.stringify([action.name, 'nonce', proven.enrolment.api_key, proven.nonce])
  return {
    action: action.name,
    transaction_id: action.transaction_id,
    fee_rate: feeRate,
    key,
    content: sha256hex(JSON.stringify([key, action.transaction_id, feeRate, level])),
  }
}
