import { ChainError, parseAmount, type Registry } from '@custody/chains'
import { emptyBody, ruleBody } from '@custody/request-auth/bodies'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { EndForwardAction } from './actions.ts'
import { badField, bodyOf } from './fields.ts'
import { payeeOf } from './payee.ts'
import type { Proven } from './request.ts'

/**
 * Rule 13: a standing rule, by which incoming funds are forwarded to one destination. Amounts in
 * the smallest unit.
 */
export interface ForwardIntent {
  action: 'forward'
  /** Public ID of the request that created it. */
  rule_id: string
  workspace: string
  sub_account: number
  asset: string
  /**
   * Minimum amount of a forward, including its own fee if the wallet pays the fee in the same coin.
   */
  min_amount: bigint
  /** Maximum sum of all forwards within 24 hours, including their own fees as above. */
  daily_cap: bigint
  destination: string
  tag: string | null
  /** Unix seconds. */
  expires_at: number
  key: string
  content: string
}

/** The deletion of a standing rule. */
export interface EndForwardIntent {
  action: 'end-forward'
  rule_id: string
  key: string
  content: string
}

export function forwardIntent(registry: Registry, proven: Proven): ForwardIntent {
  const body = bodyOf(proven, ruleBody)
  const ticker = body.asset
  const asset = registry.asset(ticker)
  if (!asset)
    throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  const amount = (name: 'min_amount' | 'daily_cap'): bigint => {
    try {
      return parseAmount(body[name], asset.decimals)
    } catch (error) {
      if (error instanceof ChainError) throw badField(name, error.message)
      throw error
    }
  }
  const [min, cap] = [amount('min_amount'), amount('daily_cap')]
  if (min <= 0n) throw badField('min_amount', 'must be greater than zero')
  if (cap < min) throw badField('daily_cap', 'must be at least min_amount')
  const { destination, tag } = payeeOf(registry, ticker, body)
  const expires = body.expires_at.getTime() / 1000
  const { workspace, sub_account } = proven.enrolment
  const key = JSON.stringify(['forward', 'nonce', proven.enrolment.api_key, proven.nonce])
  const meaning = {
    workspace,
    sub_account,
    asset: ticker,
    min_amount: min.toString(),
    daily_cap: cap.toString(),
    destination,
    tag,
    expires_at: expires,
  }
  return {
    ...meaning,
    action: 'forward',
    rule_id: proven.transaction_id,
    min_amount: min,
    daily_cap: cap,
    key,
    content: sha256hex(JSON.stringify([key, meaning])),
  }
}

export function endForwardIntent(proven: Proven, { rule_id }: EndForwardAction): EndForwardIntent {
  // A signature does not cover the method: without a body, every GET of the rule would be a signed
  // DELETE too.
  if (proven.request.body === '')
    throw badField(
      'body',
      'must be an empty object: without a body, the signature would also be valid for a GET',
    )
  bodyOf(proven, emptyBody)
  const key = JSON.stringify(['end-forward', 'nonce', proven.enrolment.api_key, proven.nonce])
  return { action: 'end-forward', rule_id, key, content: sha256hex(JSON.stringify([key, rule_id])) }
}
