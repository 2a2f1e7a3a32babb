import { ChainError, parseAmount, traitsOf, type Registry } from '@custody/chains'
import { consolidateBody } from '@custody/request-auth/bodies'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { ConsolidateAction } from './actions.ts'
import { badField, bodyOf } from './fields.ts'
import { FEE_RATE_DECIMALS, sequenceKey } from './pay.ts'
import type { Proven } from './request.ts'

/** Decimals of every coin that can be merged. */
const COIN_DECIMALS = 8

/** The caller's request to merge coins of one wallet, parsed. */
export interface ConsolidateIntent {
  action: 'consolidate'
  sub_account: number
  /** Null: the request names none, so it counts for one transaction of any coin. */
  asset: string | null
  /** The caller's limit, scaled by 10^FEE_RATE_DECIMALS. */
  fee_rate: string
  key: string
  content: string
}

/**
 * Returns the meaning of a request to merge coins. `target_coins` and `min_value` are part of it, but
 * only the platform applies them: a node knows neither the coins of a wallet nor the IDs of wallets.
 * @throws Refusal `UNKNOWN_ASSET` or `BAD_REQUEST_FIELD`
 */
export function consolidateIntent(
  registry: Registry,
  proven: Proven,
  { wallet_id }: ConsolidateAction,
): ConsolidateIntent {
  const body = bodyOf(proven, consolidateBody)
  const ticker = body.asset ?? null
  if (ticker !== null) assertMergeable(registry, ticker)
  const feeRate = scaled('max_fee_rate', body.max_fee_rate, FEE_RATE_DECIMALS)
  const least =
    body.min_value === undefined ? null : scaled('min_value', body.min_value, COIN_DECIMALS)
  const { workspace, sub_account } = proven.enrolment
  const key = sequenceKey(workspace, sub_account, ticker ?? wallet_id, body.sequence_id)
  const meaning = {
    workspace,
    sub_account,
    asset: ticker,
    wallet_id,
    fee_rate: feeRate,
    target_coins: body.target_coins,
    min_value: least,
  }
  return {
    action: 'consolidate',
    sub_account,
    asset: ticker,
    fee_rate: feeRate,
    key,
    content: sha256hex(JSON.stringify([key, 'consolidate', meaning])),
  }
}

/** @throws Refusal `UNKNOWN_ASSET` or `BAD_REQUEST_FIELD` */
function assertMergeable(registry: Registry, ticker: string): void {
  const asset = registry.asset(ticker)
  if (!asset)
    throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  if (asset.type !== 'native' || !traitsOf(registry.networkOf(asset)).consolidation)
    throw badField('asset', `the coins of ${ticker} cannot be merged`)
}

/** Returns a decimal of the body as an integer in text. @throws Refusal `BAD_REQUEST_FIELD` */
function scaled(field: string, text: string, decimals: number): string {
  try {
    const value = parseAmount(text, decimals)
    if (value > 0n) return value.toString()
  } catch (error) {
    if (error instanceof ChainError) throw badField(field, error.message)
    throw error
  }
  throw badField(field, 'must be greater than zero')
}
