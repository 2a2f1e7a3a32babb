import { ChainError, parseAmount, type Registry } from '@custody/chains'
import { transferBody } from '@custody/request-auth/bodies'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { badField, bodyOf } from './fields.ts'
import { payeeOf } from './payee.ts'
import type { Proven } from './request.ts'

/**
 * What the caller wants, typed. Two requests with the same meaning give the same `content`, however
 * they are spelt.
 */
export interface PayIntent {
  workspace: string
  sub_account: number
  asset: string
  /** Smallest unit. */
  amount: bigint
  /** Canonical spelling. */
  destination: string
  tag: string | null
  /** The caller's own limit, decimal text in the family's unit. */
  fee_rate: string | null
  /** Name of the intent (rule 4). */
  key: string
  /** Hash of the meaning. */
  content: string
}

/** A `sequence_id` stands for one intent in its wallet, whatever that is (rule 4). */
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

/** `fee_rate` is kept with this many decimals. */
export const FEE_RATE_DECIMALS = 12
