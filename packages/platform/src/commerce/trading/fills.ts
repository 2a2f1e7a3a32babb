import type { Queryable } from '../../core/database/pool.ts'
import { bookFill } from '../exchanges/books.ts'
import type { Fill } from '../exchanges/venue.ts'
import type { OrderRow } from './order.ts'

export interface Totals {
  filled: bigint
  cost: bigint
  fees: Record<string, string>
}

/**
 * Stores new fills, each with its ledger entry, and sums all fills. A fill that the exchange
 * reports again is ignored. The caller must hold the lock of the order's row.
 */
export async function noteFills(
  tx: Queryable,
  row: OrderRow,
  fills: readonly Fill[],
): Promise<Totals> {
  for (const fill of fills) {
    const made = await tx.query(
      `insert into order_fills (workspace_id, account_id, market, trade_id, order_id, price, amount,
         cost, fee, fee_coin, maker, at,
         created_at)
       values ($13, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict do nothing
         returning 1`,
      [
        row.account_id,
        row.market,
        fill.tradeId,
        row.id,
        fill.price.toString(),
        fill.amount.toString(),
        fill.cost.toString(),
        fill.fee.toString(),
        fill.feeCoin,
        fill.maker,
        new Date(fill.at),
        tx.now(),
        row.workspace_id,
      ],
    )
    if (made.length === 0) continue
    await bookFill(
      tx,
      { id: row.account_id, workspace_id: row.workspace_id },
      {
        market: row.market,
        base: row.base,
        quote: row.quote,
        side: row.side,
        fill,
      },
    )
  }
  const sums = await tx.query<{ fee_coin: string; filled: string; cost: string; fee: string }>(
    `select fee_coin, sum(amount)::text filled, sum(cost)::text cost, sum(fee)::text fee
      from order_fills
     where workspace_id = $2 and order_id = $1 group by 1 order by 1`,
    [row.id, row.workspace_id],
  )
  const sum = (of: 'filled' | 'cost') => sums.reduce((total, each) => total + BigInt(each[of]), 0n)
  return {
    filled: sum('filled'),
    cost: sum('cost'),
    fees: Object.fromEntries(sums.map(({ fee_coin, fee }) => [fee_coin, fee])),
  }
}
