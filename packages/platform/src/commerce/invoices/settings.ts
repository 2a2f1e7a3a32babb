import { byMode } from '@custody/chains/mode'
import { ChainError, parseAmount } from '@custody/chains'
import { ApiError } from '../../core/errors.ts'
import type { Queryable } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { EXPIRES_IN_S, TOLERANCE_PERCENT } from './body.ts'
import { TOLERANCE_DECIMALS } from './present.ts'

interface Services {
  settings: Pick<Settings, 'network'>
}

/**
 * Number of confirmations that a payment needs, by its value: `fromUsd` in millionths, ascending.
 */
export interface Depth {
  fromUsd: bigint
  confirmations: number
}

/** Settings for a workspace's new invoices. `tolerance` in millionths. */
export interface InvoiceSettings {
  displayName: string | null
  allowedOrigins: string[]
  depths: Depth[]
  tolerance: number
  expiresInS: number
}

interface Row {
  display_name: string | null
  allowed_origins: string[]
  confirmations: { from_usd: string; confirmations: number }[]
  tolerance: number | null
  expires_in_s: number | null
}

/**
 * Parses a tolerance.
 * @throws ApiError `INVALID_REQUEST` that names the field
 */
export function readTolerance(percent: string): number {
  const refused = (reason: string) =>
    new ApiError('INVALID_REQUEST', `tolerance: ${reason}`, { field: 'tolerance' })
  let value: bigint
  try {
    value = parseAmount(percent, TOLERANCE_DECIMALS)
  } catch (error) {
    throw error instanceof ChainError ? refused(error.message) : error
  }
  if (value > BigInt(TOLERANCE_PERCENT.most) * 10n ** BigInt(TOLERANCE_DECIMALS)) {
    throw refused(`must be at most ${TOLERANCE_PERCENT.most} percent`)
  }
  return Number(value)
}

/**
 * Validates an invoice's lifetime in seconds.
 * @throws ApiError `INVALID_REQUEST`
 */
export function readLife({ settings }: Services, seconds: number | undefined): number | undefined {
  const least = byMode(settings.network, {
    local: 0,
    regtest: EXPIRES_IN_S.leastReal,
    mainnet: EXPIRES_IN_S.leastReal,
  })
  if (seconds === undefined || seconds >= least) return seconds
  throw new ApiError(
    'INVALID_REQUEST',
    `expires_in: must be an integer from ${EXPIRES_IN_S.leastReal} to ${EXPIRES_IN_S.most}`,
    {
      field: 'expires_in',
    },
  )
}

export async function readInvoiceSettings(
  database: Queryable,
  workspaceId: string,
): Promise<InvoiceSettings> {
  const row = await database.one<Row>(
    `select display_name, allowed_origins, confirmations, tolerance, expires_in_s
      from invoice_settings where workspace_id = $1`,
    [workspaceId],
  )
  return {
    displayName: row?.display_name ?? null,
    allowedOrigins: row?.allowed_origins ?? [],
    depths: (row?.confirmations ?? []).map(({ from_usd, confirmations }) => ({
      fromUsd: BigInt(from_usd),
      confirmations,
    })),
    tolerance: row?.tolerance ?? readTolerance(TOLERANCE_PERCENT.usual),
    expiresInS: row?.expires_in_s ?? EXPIRES_IN_S.usual,
  }
}

/**
 * Returns the number of confirmations that a payment of this value needs, in addition to being
 * credited.
 * @param micro millionths of a USD; null: the value is unknown
 */
export function depthFor(depths: readonly Depth[], micro: bigint | null): number {
  if (micro === null) return Math.max(0, ...depths.map(({ confirmations }) => confirmations))
  return depths.findLast(({ fromUsd }) => fromUsd <= micro)?.confirmations ?? 0
}
