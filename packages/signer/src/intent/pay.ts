import { ChainError, parseAmount, type Registry } from '@custody/chains'
import { JsonNumber } from '@custody/request-auth'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { badField, fieldsOf } from './fields.ts'
import { payeeOf } from './payee.ts'
import type { Proven } from './request.ts'

/** What the caller wants, typed. Two requests with the same meaning give the same `content`, however they are spelt. */
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
export const sequenceKey = (workspace: string, subAccount: number, ticker: string, sequence: string): string => JSON.stringify(['pay', 'sequence', workspace, subAccount, ticker, sequence])

/** Fields of POST /dac/v1/transaction; whatever else stands in the body is refused. */
const FIELDS = new Set(['asset', 'amount', 'destination_address', 'destination_type', 'source_type', 'sequence_id', 'memo', 'address_tag', 'fee_rate', 'fee_level', 'type', 'ts'])

export function payIntent(registry: Registry, proven: Proven): PayIntent {
  const read = fieldsOf(proven, FIELDS)
  const { raw: fields, text, decimal, one } = read
  const ticker = text('asset') as string
  const asset = registry.asset(ticker)
  if (!asset) throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  one('destination_type', 'EXTERNAL')
  one('source_type', 'INTERNAL')
  one('type', 'Withdraw', true)
  const level = text('fee_level', true)
  if (level !== null && !['low', 'medium', 'high'].includes(level)) throw badField('fee_level', 'must be low, medium or high')
  const sequence = text('sequence_id', true)
  if (fields['memo'] !== undefined && fields['memo'] !== null && (typeof fields['memo'] !== 'string' || fields['memo'].length > 1024)) throw badField('memo', 'must be a text')
  if (fields['ts'] !== undefined && typeof fields['ts'] !== 'string' && !(fields['ts'] instanceof JsonNumber)) throw badField('ts', 'must be a number or a text')

  let amount: bigint
  let feeRate: string | null = null
  let destination: string
  let tag: string | null
  try {
    amount = parseAmount(decimal('amount'), asset.decimals)
    if (fields['fee_rate'] !== undefined && fields['fee_rate'] !== null) feeRate = parseAmount(decimal('fee_rate'), 12).toString()
    ;({ destination, tag } = payeeOf(registry, ticker, read))
  } catch (error) {
    if (error instanceof ChainError) throw badField('amount', error.message)
    throw error
  }
  if (amount <= 0n) throw badField('amount', 'must be more than zero')

  const { workspace, sub_account } = proven.enrolment
  const key = sequence === null
    ? JSON.stringify(['pay', 'nonce', proven.enrolment.api_key, proven.nonce])
    : sequenceKey(workspace, sub_account, ticker, sequence)
  const meaning = { workspace, sub_account, asset: ticker, amount: amount.toString(), destination, tag, fee_rate: feeRate, fee_level: level }
  return { ...meaning, amount, key, content: sha256hex(JSON.stringify([key, meaning])) }
}

/** `fee_rate` is kept with this many decimals. */
export const FEE_RATE_DECIMALS = 12
