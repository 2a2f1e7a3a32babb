import { formatAmount } from '@custody/chains'
import type { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'
import { LIST_MAX, WORD_MAX } from '../../core/bounds.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { exact, exactUsd, USD_DECIMALS } from '../../core/decimals.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import { PRICE_DECIMALS, usdValue } from '../../custody/prices/decimals.ts'
import type { AccountRow } from './account.ts'
import { showUnits, VENUE_DECIMALS } from './units.ts'
import type { Balance } from './venue.ts'

interface Services {
  database: Database
  prices: Prices
}

const coins = z.number().meta({ description: 'Exact decimal' })

export const balanceShape = z
  .object({
    asset: z.string().max(WORD_MAX),
    available: coins,
    total: coins,
    usd: z
      .number()
      .nullable()
      .meta({ description: 'Value of `total`; null: no current price is available' }),
    price_usd: z
      .number()
      .nullable()
      .meta({ description: 'Price of one unit; null: no current price is available' }),
  })
  .meta({ id: 'ExchangeBalance' })

/**
 * Stores the balances that the exchange reported, in place of the earlier ones. The caller must
 * hold the lock of the account's row.
 */
export async function keepBalances(
  tx: Queryable,
  accountId: string,
  balances: readonly Balance[],
): Promise<void> {
  await tx.query('delete from exchange_balances where account_id = $1', [accountId])
  await tx.query(
    `insert into exchange_balances (account_id, coin, available, total)
     select $1, b.coin, b.available, b.total from jsonb_to_recordset($2) as b(coin text,
       available numeric, total numeric)`,
    [
      accountId,
      JSON.stringify(
        balances.map(({ coin, available, total }) => ({
          coin,
          available: available.toString(),
          total: total.toString(),
        })),
      ),
    ],
  )
  await tx.query('update exchange_accounts set balances_at = $2 where id = $1', [
    accountId,
    tx.now(),
  ])
}

/** Returns the balances that were read last, coin by coin, with their current value. */
export async function presentBalances(services: Services, row: AccountRow) {
  const rows = await services.database.query<{ coin: string; available: string; total: string }>(
    `select coin, available::text, total::text from exchange_balances where account_id = $1
      order by coin limit $2`,
    [row.id, LIST_MAX],
  )
  return rows.map(({ coin, available, total }) => {
    const worth = worthOf(services, coin, BigInt(total))
    return {
      asset: coin,
      available: exact(showUnits(BigInt(available))),
      total: exact(showUnits(BigInt(total))),
      usd: worth === null ? null : exactUsd(worth),
      price_usd: priceOf(services, coin),
    }
  })
}

/** Returns the current price of one unit at an exchange in US dollars; null if it is not known. */
function priceOf(services: Pick<Services, 'prices'>, coin: string): JsonNumber | null {
  if (coin === 'USD') return exact('1')
  const price = services.prices.price(coin)
  return price === null || price.stale ? null : exact(formatAmount(price.price, PRICE_DECIMALS))
}

/**
 * Returns the current value of an amount at an exchange, in millionths of a USD; null if no current
 * price is known.
 */
export function worthOf(
  services: Pick<Services, 'prices'>,
  coin: string,
  amount: bigint,
): bigint | null {
  if (coin === 'USD') return amount / 10n ** BigInt(VENUE_DECIMALS - USD_DECIMALS)
  const price = services.prices.price(coin)
  return price === null || price.stale ? null : usdValue(amount, VENUE_DECIMALS, price.price)
}
