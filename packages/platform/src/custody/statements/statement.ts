import { formatAmount, type Registry } from '@custody/chains'
import type { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'
import { ADDRESS_MAX, HASH_MAX, ID_MAX, NAME_MAX, TIME_MAX, WORD_MAX } from '../../core/bounds.ts'
import { exact } from '../../core/decimals.ts'
import type { Environment } from '../../core/environment.ts'
import { ApiError } from '../../core/errors.ts'
import { assetName, integer } from '../../core/http/schemas.ts'
import { OWNERS, PARTS, type Parts, type StatementAccount } from './accounts.ts'
import { totalOf, type Movement, type Period } from './movements.ts'
import { MOVEMENT_TYPES } from './types.ts'

const INT32_MAX = 2_147_483_647

/** Query parameters that select a statement. */
export const statementQuery = {
  asset: assetName,
  account: z.enum(OWNERS).default('wallet').meta({
    description:
      'wallet: the wallet of the asset in the sub-account. gas_tank: the gas tank of the workspace whose coin the asset is, with its fuel at addresses',
  }),
  from: integer(
    0,
    INT32_MAX,
    'Beginning of the period as Unix time in seconds, inclusive; by default all movements are included',
  ).optional(),
  to: integer(
    0,
    INT32_MAX,
    'End of the period as Unix time in seconds, exclusive; by default now',
  ).optional(),
}

/**
 * Returns the period of a query.
 * @throws ApiError `INVALID_REQUEST`, field `to`
 */
export function periodOf(
  { environment }: { environment: Pick<Environment, 'now'> },
  { from = 0, to }: { from?: number | undefined; to?: number | undefined },
): Period {
  // The database dates entries by its own clock, which may be ahead of this one.
  const end = to === undefined ? environment.now() + DAY_MS : to * 1000
  if (end <= from * 1000)
    throw new ApiError('INVALID_REQUEST', 'to: must be later than `from`', { field: 'to' })
  return { from: new Date(from * 1000), to: new Date(end) }
}

const DAY_MS = 86_400_000

const AMOUNTS = {
  liquid: 'At the account of the wallet or tank, including amounts that are reserved for transfers',
  unswept: 'At deposit addresses',
  frozen: 'In deposits that screening holds',
  staked: 'Staked',
  cooling: 'Unstaked and not released yet',
  at_addresses: 'Fuel of a gas tank at addresses; 0 for a wallet',
} as const satisfies Record<(typeof PARTS)[number], string>

const partShape = (part: (typeof PARTS)[number]) => z.number().meta({ description: AMOUNTS[part] })
const parts = {
  liquid: partShape('liquid'),
  unswept: partShape('unswept'),
  frozen: partShape('frozen'),
  staked: partShape('staked'),
  cooling: partShape('cooling'),
  at_addresses: partShape('at_addresses'),
}

export const balanceShape = z
  .object({ total: z.number().meta({ description: 'Sum of the parts' }), ...parts })
  .meta({ id: 'StatementBalance' })

export const movementShape = z
  .object({
    id: z.string().max(ID_MAX).meta({ description: 'Number of the ledger entry' }),
    at: z.string().max(TIME_MAX).meta({ description: 'When it was booked' }),
    type: z.enum(MOVEMENT_TYPES),
    amount: z
      .number()
      .meta({ description: 'Change of the balance without the network fee; negative: outgoing' }),
    network_fee: z.number().meta({ description: 'Network fee that was paid from this balance' }),
    balance: z.number().meta({
      description: 'Balance after the movement: the balance before + `amount` − `network_fee`',
    }),
    changes: z.object(parts).meta({ description: 'Change of each part of the balance' }),
    tank_fee: z.number().nullable().meta({
      description:
        'Network fee that the gas tank paid for the movement of a wallet. It is not part of this balance. null: the gas tank paid nothing',
    }),
    tank_fee_asset: z.string().max(WORD_MAX).nullable(),
    transaction_id: z.string().max(ID_MAX).nullable(),
    transaction_asset: z.string().max(WORD_MAX).nullable().meta({
      description: 'Asset of the transaction; it differs if this balance only pays the network fee',
    }),
    hash: z.string().max(HASH_MAX).nullable(),
    counterparty: z
      .string()
      .max(ADDRESS_MAX)
      .nullable()
      .meta({ description: 'Sender of a deposit, otherwise the destination' }),
    sequence_id: z.string().max(NAME_MAX).nullable(),
  })
  .meta({ id: 'StatementMovement' })

interface Services {
  registry: Registry
}

const show = (amount: bigint, decimals: number): JsonNumber => exact(formatAmount(amount, decimals))

const presentParts = (amounts: Parts, decimals: number) => ({
  liquid: show(amounts.liquid, decimals),
  unswept: show(amounts.unswept, decimals),
  frozen: show(amounts.frozen, decimals),
  staked: show(amounts.staked, decimals),
  cooling: show(amounts.cooling, decimals),
  at_addresses: show(amounts.at_addresses, decimals),
})

/** Converts a balance to its public shape. */
export const presentBalance = (amounts: Parts, { asset: { decimals } }: StatementAccount) => ({
  total: show(totalOf(amounts), decimals),
  ...presentParts(amounts, decimals),
})

/**
 * Converts a movement to its public shape.
 * @param balance balance after it, in the smallest unit
 */
export function presentMovement(
  { registry }: Services,
  { asset: { decimals } }: StatementAccount,
  movement: Movement,
  balance: bigint,
) {
  const { position, at, type, amount, fee, changes, tankFee, transaction } = movement
  return {
    id: position.id,
    at: at.toISOString(),
    type,
    amount: show(amount, decimals),
    network_fee: show(fee, decimals),
    balance: show(balance, decimals),
    changes: presentParts(changes, decimals),
    tank_fee:
      tankFee === null
        ? null
        : show(tankFee.amount, registry.asset(tankFee.asset)?.decimals ?? decimals),
    tank_fee_asset: tankFee?.asset ?? null,
    transaction_id: transaction?.id ?? null,
    transaction_asset: transaction?.asset ?? null,
    hash: transaction?.hash ?? null,
    counterparty: transaction?.counterparty ?? null,
    sequence_id: transaction?.sequenceId ?? null,
  }
}

/** Adds the changes of a movement to a balance. */
export const balanceAfter = (balance: bigint, { amount, fee }: Movement): bigint =>
  balance + amount - fee
