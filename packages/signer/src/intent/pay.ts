import { ChainError, parseAmount, type Registry } from '@custody/chains'
import { transferBody } from '@custody/request-auth/bodies'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { badField, bodyOf } from './fields.ts'
import { payeeOf } from './payee.ts'
import type { Proven } from './request.ts'

/**
 * The caller's request, parsed. Two requests with the same meaning have the same `content`, however
 * they are written.
 */
export interface PayIntent {
  workspace: string
  sub_account: number
  asset: string
  /** Smallest unit. */
  amount: bigint
  /** In canonical form. */
  destination: string
  tag: string | null
  /** The caller's own limit, as decimal text in the unit of the network family. */
  fee_rate: string | null
  /** Name of the intent (rule 4). */
  key: string
  /** Hash of the meaning. */
  content: string
}

/**
 * Returns the name of an intent with a `sequence_id`, which identifies one intent of any kind in
 * its wallet (rule 4).
 */
export const sequenceKey = (
  workspace: string,
  subAccount: number,
  ticker: string,
  sequence: string,
): string => JSON.stringify(['pay', 'sequence', workspace, subAccount, ticker, sequence])

export function payIntent(registry: Registry, proven: Proven): PayIntent {
  const body = bodyOf(proven, transferBody)
  const ticker = body.asset
  const asset = registry.asset(ticker)
  if (!asset)
    throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  const [level, sequence] = [body.fee_level ?? null, body.sequence_id ?? null]

  let amount: bigint
  let feeRate: string | null = null
  let destination: string
  let tag: string | null
  try {
    amount = parseAmount(body.amount, asset.decimals)
    if (body.fee_rate !== undefined)
      feeRate = parseAmount(body.fee_rate, FEE_RATE_DECIMALS).toString()
    ;({ destination, tag } = payeeOf(registry, ticker, body))
  } catch (error) {
    if (error instanceof ChainError) throw badField('amount', error.message)
    throw error
  }
  if (amount <= 0n) throw badField('amount', 'must be greater than zero')

  const { workspace, sub_account } = proven.enrolment
  const key =
    sequence === null
      ? JSON.stringify(['pay', 'nonce', proven.enrolment.api_key, proven.nonce])
      : sequenceKey(workspace, sub_account, ticker, sequence)
  const meaning = {
    workspace,
    sub_account,
    asset: ticker,
    amount: amount.toString(),
    destination,
    tag,
    fee_rate: feeRate,
    fee_level: level,
  }
  return { ...meaning, amount, key, content: sha256hex(JSON.stringify([key, meaning])) }
}

/** Number of decimals with which `fee_rate` is stored. */
export const FEE_RATE_DECIMALS = 12
