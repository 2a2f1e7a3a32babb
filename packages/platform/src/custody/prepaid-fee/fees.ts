import type { Asset } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import { SQL_ERRORS, sqlErrorOf } from '../../core/database/sql-errors.ts'
import { ApiError } from '../../core/errors.ts'
import { coinOf } from '../prices/coins.ts'
import { usdValue } from '../prices/decimals.ts'
import type { Kind } from '../../core/engine/interfaces/kind.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Prices } from '../prices/prices.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { feeOf, tierNamed } from '../../core/settings/tiers.ts'
import { showUsd } from '../../core/decimals.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers' | 'prices'>
  environment: Environment
  prices: Prices
}

/** Platform fee of a transfer, in millionths of a US dollar. */
export interface FeeQuote {
  /** Null if the fee does not depend on it and there is no price. */
  amountUsd: bigint | null
  fee: bigint
  /** The tier's minimum fee; below this balance the account counts as empty. */
  least: bigint
}

/** Returns the current UTC day as YYYY-MM-DD. */
export const utcDay = (services: Pick<Services, 'environment'>): string =>
  new Date(services.environment.now()).toISOString().slice(0, 10)

/**
 * Values an amount at the current price and returns its fee. Uses prices in memory only, so it
 * never waits.
 * @param tierName the workspace's tier
 * @throws ApiError `PRICE_UNAVAILABLE` if the fee depends on a price that no source has or that is
 *   older than 5 minutes, and the operator has configured no fee for that case
 */
export function quotePlatformFee(
  services: Pick<Services, 'settings' | 'prices'>,
  tierName: string | null,
  asset: Asset,
  amount: bigint,
): FeeQuote {
  const tier = tierNamed(services.settings.prepaidTiers, tierName)
  const price = services.prices.price(coinOf(asset))
  if (!price || price.stale) {
    if (tier.basisPoints === 0n) return { amountUsd: null, fee: tier.least, least: tier.least }
    const fixed = services.settings.prices?.feesWithoutPrice[coinOf(asset)]
    if (fixed !== undefined)
      return { amountUsd: null, fee: fixed > tier.least ? fixed : tier.least, least: tier.least }
    const why = price
      ? `the last price is of ${new Date(price.at).toISOString()}`
      : 'no source has a price'
    const missing = `there is no current USD price of ${asset.asset_name} (${why}), so its platform fee is unknown`
    throw new ApiError('PRICE_UNAVAILABLE', `asset: ${missing}; nothing was created, try again`, {
      field: 'asset',
    })
  }
  const amountUsd = usdValue(amount, asset.decimals, price.price)
  return { amountUsd, fee: feeOf(tier, amountUsd), least: tier.least }
}

/**
 * Returns the API error if a database error means that the account holds too little, otherwise
 * null.
 */
export function exhausted(error: unknown, fee: bigint): ApiError | null {
  const { code, detail } = sqlErrorOf(error)
  if (code !== SQL_ERRORS.prepaidShort) return null
  const short = `has ${showUsd(BigInt(detail ?? '0'))} USD, less than the platform fee of ${showUsd(fee)} USD`
  return new ApiError(
    'PREPAID_FEE_EXHAUSTED',
    `the prepaid fee account ${short}; top it up. Wallets are not affected`,
  )
}

/** Returns the balance in such a database error; null for any other error. */
export function balanceOfRefusal(error: unknown): bigint | null {
  const { code, detail } = sqlErrorOf(error)
  return code === SQL_ERRORS.prepaidShort ? BigInt(detail ?? '0') : null
}

export async function tierOfWorkspace(
  database: Queryable,
  workspaceId: string,
): Promise<string | null> {
  return (
    (
      await database.one<{ tier: string }>(
        'select tier from prepaid_accounts where workspace_id = $1',
        [workspaceId],
      )
    )?.tier ?? null
  )
}

/**
 * Reserves the platform fee of a transaction whose row was already written, in the same database
 * transaction. It must be the last lock that is acquired. For a withdrawal, `create_withdrawal`
 * does this.
 * @throws ApiError `PREPAID_FEE_EXHAUSTED`; the database transaction must then be rolled back
 */
export async function reservePlatformFee(
  tx: Queryable,
  o: { transactionId: string; workspaceId: string; quote: FeeQuote },
): Promise<void> {
  const { amountUsd, fee, least } = o.quote
  await tx.query(
    'update transactions set amount_usd = $2, platform_fee = $3 where workspace_id = $4 and id = $1',
    [o.transactionId, amountUsd?.toString() ?? null, fee.toString(), o.workspaceId],
  )
  try {
    await tx.query('select prepaid_reserve($1, $2, $3, $4)', [
      o.workspaceId,
      o.transactionId,
      fee.toString(),
      least.toString(),
    ])
  } catch (error) {
    throw exhausted(error, fee) ?? error
  }
}

/**
 * Charges the reserved fee once, before the signed bytes are first sent. Does nothing if none was
 * reserved.
 */
export async function chargePlatformFee(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  row: TransactionRow,
): Promise<void> {
  if (row.platform_fee)
    await tx.query('select prepaid_charge($1, $2, $3)', [
      row.workspace_id,
      row.id,
      utcDay(services),
    ])
}

/**
 * Platform fee handlers of a transaction kind: the fee is charged when the transaction is sent, and
 * released (`refunded`) if it never was.
 */
export const platformFee = (services: Pick<Services, 'environment'>) =>
  ({
    broadcast: (tx, row) => chargePlatformFee(services, tx, row),
    async failed(tx, row, { plan }) {
      if (plan?.['refunded'])
        await tx.query('select prepaid_release($1, $2, $3)', [
          row.workspace_id,
          row.id,
          utcDay(services),
        ])
    },
  }) satisfies Pick<Kind<'WITHDRAWAL' | 'STAKE' | 'UNSTAKE' | 'RELEASE'>, 'broadcast' | 'failed'>
