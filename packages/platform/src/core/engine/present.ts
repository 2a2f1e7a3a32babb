import { formatAmount, type Registry } from '@custody/chains'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  HASH_MAX,
  ID_MAX,
  INT_MAX,
  MEMO_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  NODES,
  WORD_MAX,
} from '../bounds.ts'
import { exact, exactUsd } from '../decimals.ts'
import { waitingShape } from './waiting.ts'
import { voidShape } from '../signing/void.ts'
import { generationOf, REORGANISED } from './settlement.ts'
import type { TransactionKind, TransactionRow } from './transaction.ts'

const TYPES: Record<TransactionKind, string> = {
  WITHDRAWAL: 'Withdraw',
  DEPOSIT: 'Deposit',
  SWEEP: 'Sweep',
  FUEL: 'Fuel',
  TANK_DEPOSIT: 'GasTankDeposit',
  DRAIN: 'GasTankDrain',
  STAKE: 'Stake',
  UNSTAKE: 'Unstake',
  RELEASE: 'Release',
  CONSOLIDATION: 'Consolidation',
  LEND: 'EnergyLoan',
  LEND_BACK: 'EnergyReturn',
}

/** Transaction kinds by their public type. */
export const KIND_OF_TYPE = new Map(
  Object.entries(TYPES).map(([kind, type]) => [type, kind as TransactionKind]),
)
export const TYPE_NAMES = Object.values(TYPES)
export const STATUSES = ['pending', 'confirmed', 'failed'] as const

export const transactionShape = z
  .object({
    id: z.string().max(ID_MAX),
    type: z.string().max(WORD_MAX),
    hash: z.string().max(HASH_MAX).nullable(),
    asset: z.string().max(WORD_MAX),
    amount: z.number(),
    fee: z.number().meta({
      description:
        'Network fee: an estimate until confirmation, then the fee paid; 0 if the transaction failed before it reached a chain',
    }),
    fee_asset: z.string().max(WORD_MAX),
    source_type: z.string().max(WORD_MAX),
    source_id: z.string().max(ADDRESS_MAX).nullable(),
    destination_type: z.string().max(WORD_MAX),
    destination_id: z.string().max(ADDRESS_MAX).nullable(),
    address_tag: z.string().max(NAME_MAX).nullable(),
    status: z.enum(STATUSES),
    sub_status: z.string().max(WORD_MAX),
    confirmations: z.int().min(0).max(INT_MAX),
    generation: z.int().min(0).max(INT_MAX).optional().meta({
      description:
        'How often a reorganisation of the chain has removed the block that confirmed or failed it; 0 for almost all transactions. A later event of the same transaction with a higher generation replaces earlier ones. Absent in responses and events that an earlier version has stored',
    }),
    memo: z.string().max(MEMO_MAX).meta({
      description: 'The memo in the request; empty if there was none, and for deposits',
    }),
    sequence_id: z.string().max(NAME_MAX).nullable(),
    failure_reason: z.string().max(MESSAGE_MAX).nullable(),
    amount_in_usd: z.number().nullable().meta({
      description:
        'Value at the price when the transaction was created, or when the deposit was first seen in a block; it never changes. null if there was no current price',
    }),
    platform_fee: z.number().nullable().meta({
      description:
        'Platform fee in USD; for a failed transaction, the part that was charged. null: no platform fee applies',
    }),
    voids: z.array(voidShape).max(NODES).meta({
      description:
        'For a transfer that failed before payment: proof that the signer nodes will sign nothing for it',
    }),
    created_at: z.string(),
    updated_at: z.string(),
    confirmed_at: z.string().nullable(),
  })
  .meta({ id: 'Transaction' })

/**
 * A transaction as it is read now. Events and creation responses are stored as they were written
 * and do not include `waiting`.
 */
export const transactionNowShape = transactionShape
  .extend({
    waiting: waitingShape.nullable().meta({
      description: 'What a pending transfer is waiting for; null while it is being processed',
    }),
  })
  .meta({ id: 'TransactionNow' })

function subStatusOf(row: TransactionRow): string {
  const isDeposit = row.kind === 'DEPOSIT' || row.kind === 'TANK_DEPOSIT'
  if (!isDeposit && row.status === 'pending' && generationOf(row) > 0) return REORGANISED
  // A deposit held by screening is shown with the same state as a held transfer.
  return row.state === 'FROZEN' ? 'AML_HELD' : row.state
}

/**
 * Converts a transaction to its public shape. `fee` is the estimate until the transaction is
 * confirmed.
 */
export function presentTransaction(row: TransactionRow, registry: Registry) {
  const decimals = registry.asset(row.asset)?.decimals ?? 0
  const feeDecimals = registry.asset(row.fee_asset)?.decimals ?? 0
  return {
    id: row.id,
    type: TYPES[row.kind],
    hash: row.hash,
    asset: row.asset,
    amount: exact(formatAmount(BigInt(row.amount), decimals)),
    fee: exact(formatAmount(BigInt(row.fee), feeDecimals)),
    fee_asset: row.fee_asset,
    source_type: row.source_type,
    source_id: row.source_id,
    destination_type: row.destination_type,
    destination_id: row.destination_id,
    address_tag: row.address_tag,
    status: row.status,
    sub_status: subStatusOf(row),
    confirmations: row.confirmations,
    generation: generationOf(row),
    memo: row.memo ?? '',
    sequence_id: row.sequence_id,
    failure_reason: row.failure_reason,
    amount_in_usd: row.amount_usd ? exactUsd(BigInt(row.amount_usd)) : null,
    platform_fee: row.platform_fee
      ? exactUsd(row.plan.refunded === '1' ? 0n : BigInt(row.platform_fee))
      : null,
    voids: row.status === 'failed' ? (row.voids ?? []) : [],
    created_at: row.created_at.toISOString(),
    // An event is created from a row that was read before `updated_at` was set, so `updated_at` is
    // at least `confirmed_at`.
    updated_at: (row.confirmed_at && row.confirmed_at > row.updated_at
      ? row.confirmed_at
      : row.updated_at
    ).toISOString(),
    confirmed_at: row.confirmed_at?.toISOString() ?? null,
  }
}

/**
 * Converts a transaction that was just read from the database to its public shape, with `waiting`.
 */
export function presentNow(row: TransactionRow, registry: Registry) {
  return {
    ...presentTransaction(row, registry),
    waiting: row.status === 'pending' ? (row.waiting ?? null) : null,
  }
}
