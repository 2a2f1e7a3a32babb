import { stringifyJson } from '@custody/request-auth'
import type { Asset } from '@custody/chains'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  HASH_MAX,
  ID_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { exact } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'
import type { LeasedTable } from '../exchanges/lease.ts'
import { decimalOrNull, units } from '../exchanges/market-data.ts'
import { showUnits, VENUE_DECIMALS } from '../exchanges/units.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { emit } from '../../core/ledger/post.ts'

export const DIRECTIONS = ['to_exchange', 'from_exchange'] as const
const STATES = ['NEW', 'SENDING', 'ASKING', 'WITHDRAWING', 'MOVING', 'DONE', 'FAILED'] as const
export const TRANSFER_STATUSES = ['pending', 'completed', 'failed', 'unknown'] as const

/** A row of `exchange_transfers`. Amounts are decimal strings of 18 decimals. */
export interface ExchangeTransferRow {
  id: string
  workspace_id: string
  sub_account_id: string
  account_id: string
  exchange: string
  direction: (typeof DIRECTIONS)[number]
  asset: string
  network: string
  coin: string
  amount: string
  credited: string | null
  fee: string | null
  address: string
  address_tag: string | null
  venue_key: string | null
  client_id: string | null
  venue_id: string | null
  transaction_id: string | null
  hash: string | null
  state: (typeof STATES)[number]
  status: (typeof TRANSFER_STATUSES)[number]
  reason: string | null
  last_error: string | null
  sent_at: Date | null
  overdue_at: Date | null
  sequence_id: string | null
  version: number
  attempts: number
  lease_token: string | null
  created_at: Date
  updated_at: Date
}

export const exchangeTransferShape = z
  .object({
    id: z.string().max(ID_MAX),
    exchange_account: z.string().max(ID_MAX),
    exchange: z.string().max(WORD_MAX),
    direction: z.enum(DIRECTIONS),
    asset: z.string().max(WORD_MAX),
    amount: units,
    credited: units.nullable().meta({ description: 'Amount that the exchange credited' }),
    fee: units.nullable().meta({
      description:
        'Fee that the exchange charged for a withdrawal, deducted from the amount or in addition to it',
    }),
    address: z.string().max(ADDRESS_MAX),
    address_tag: z.string().max(NAME_MAX).nullable(),
    status: z.enum(TRANSFER_STATUSES),
    sub_status: z.enum(STATES).meta({
      description:
        'NEW: not requested yet; SENDING: the request is being sent; ASKING: the response was lost, and the exchange is queried; WITHDRAWING: the exchange accepted it; MOVING: on the chain; DONE: credited at the destination; FAILED',
    }),
    transaction_id: z.string().max(ID_MAX).nullable().meta({
      description: 'The transfer to the exchange, or the deposit that the withdrawal arrived as',
    }),
    exchange_transfer_id: z
      .string()
      .max(ADDRESS_MAX)
      .nullable()
      .meta({ description: 'The exchange’s id of the transfer' }),
    hash: z.string().max(HASH_MAX).nullable(),
    reason: z.string().max(MESSAGE_MAX).nullable(),
    overdue: z.boolean().meta({ description: 'Whether the transfer takes longer than expected' }),
    sequence_id: z.string().max(NAME_MAX).nullable(),
    version: z.int().min(0),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'ExchangeTransfer' })

export function presentExchangeTransfer(row: ExchangeTransferRow) {
  const orNull = (text: string | null) => decimalOrNull(text === null ? null : BigInt(text))
  return {
    id: row.id,
    exchange_account: row.account_id,
    exchange: row.exchange,
    direction: row.direction,
    asset: row.asset,
    amount: exact(showUnits(BigInt(row.amount))),
    credited: orNull(row.credited),
    fee: orNull(row.fee),
    address: row.address,
    address_tag: row.address_tag,
    status: row.status,
    sub_status: row.state,
    transaction_id: row.transaction_id,
    exchange_transfer_id: row.venue_id,
    hash: row.hash,
    reason: row.reason,
    overdue: row.overdue_at !== null,
    sequence_id: row.sequence_id,
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/** Emits an event about a transfer, whose row is locked. */
export async function tellTransfer(
  tx: Queryable,
  row: ExchangeTransferRow,
  type: 'exchange_transfer.created' | 'exchange_transfer.updated',
): Promise<void> {
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    type,
    stringifyJson(presentExchangeTransfer(row)),
  )
}

export const TRANSFERS: LeasedTable<ExchangeTransferRow> = {
  name: 'exchange_transfers',
  json: new Set(),
  interrupt: null,
  emittedFields: [
    'state',
    'status',
    'reason',
    'venue_id',
    'hash',
    'transaction_id',
    'credited',
    'overdue_at',
  ],
  emit: (tx, row) => tellTransfer(tx, row, 'exchange_transfer.updated'),
}

/**
 * Converts an amount in an asset's smallest unit to the units in which all amounts at exchanges are
 * stored.
 */
export const toUnits = (amount: bigint, { decimals }: Asset): bigint =>
  amount * 10n ** BigInt(VENUE_DECIMALS - decimals)

/** Converts units to an asset's smallest unit, rounded down. */
export const toAmount = (units: bigint, asset: Asset | undefined): bigint =>
  units / 10n ** BigInt(VENUE_DECIMALS - (asset?.decimals ?? 0))

/** Returns the exchange's name of an asset's coin. */
export const coinAt = ({ ticker }: Asset): string => ticker

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a transfer of the caller's sub-account. A transfer of another sub-account is reported as
 * missing.
 * @throws ApiError `NOT_FOUND`
 */
export async function findTransfer(
  database: Queryable,
  caller: Caller,
  input: string,
): Promise<ExchangeTransferRow> {
  const id = input.toLowerCase()
  const row = UUID.test(id)
    ? await database.one<ExchangeTransferRow>(
        `select * from exchange_transfers where workspace_id = $3 and id = $1
          and sub_account_id = $2`,
        [id, caller.subAccountId, caller.workspaceId],
      )
    : undefined
  if (row) return row
  throw new ApiError(
    'NOT_FOUND',
    `id: exchange transfer ${input.slice(0, 100)} does not exist in this sub-account`,
    { field: 'id' },
  )
}
