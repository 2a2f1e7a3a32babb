import { z } from 'zod'
import { ID_MAX, NAME_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pageOf, pageQuery } from '../../core/http/schemas.ts'
import { exactUsd } from '../../core/decimals.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

const TYPES: Record<string, string> = {
  'prepaid-reserve': 'reservation',
  'prepaid-charge': 'charge',
  'prepaid-refund': 'refund',
  'prepaid-adjust': 'adjustment',
  'prepaid-subscription': 'subscription',
}
/** Prefix of the references of exchange orders. */
const ORDER = 'order:'
const OF_TRANSACTIONS = new Set(['prepaid-reserve', 'prepaid-charge', 'prepaid-refund'])

/**
 * Lists every movement of the workspace's account, newest first; the sum of `balance_change` is the
 * balance.
 */
export const listPrepaidEntries = endpoint({
  id: 'listPrepaidFeeEntries',
  tag: 'Prepaid fee account',
  description: 'Returns top-ups and charges, newest first.',
  method: 'GET',
  path: '/dac/v1/prepaid-fee/entries',
  summary: 'List the movements of the prepaid fee account',
  access: 'read',
  query: z.strictObject(pageQuery),
  response: pageOf(
    z.object({
      id: z.string().max(ID_MAX),
      type: z.enum(['reservation', 'charge', 'refund', 'adjustment', 'subscription']),
      amount: z.number(),
      balance_change: z.number(),
      balance_after: z.number().meta({ description: 'Balance of the account after the movement' }),
      transaction_id: z.string().max(ID_MAX).nullable(),
      order_id: z.string().max(NAME_MAX).nullable(),
      created_at: z.string(),
    }),
  ),
  async handler({ caller, query: { page, limit } }, services: Services) {
    // A charge moves an amount that is already reserved; every other entry changes the balance.
    const from = `from ledger_accounts a join ledger_postings p on p.workspace_id = a.workspace_id and p.account_id = a.id
        join ledger_entries e on e.workspace_id = p.workspace_id and e.id = p.entry_id
      where a.workspace_id = $1 and a.wallet_id is null and a.asset = 'USD' and (
        a.kind = 'prepaid' or (a.kind = 'prepaid_reserved' and e.kind = 'prepaid-charge')
      )`
    const [rows, count] = await Promise.all([
      services.database.query<{
        id: string
        kind: string
        reference: string
        amount: string
        after: string
        created_at: Date
      }>(
        // Balances are calculated backwards from the current balance by subtracting newer entries.
        `with newest as (
           select e.id, e.kind, e.reference, p.amount, e.created_at, case
             when a.kind = 'prepaid' then p.amount else 0 end change ${from}
           order by e.id desc limit $2::bigint + $3::bigint
         )
         select id::text, kind, reference, amount::text, created_at, (
           coalesce((select balance from ledger_accounts
             where workspace_id = $1 and wallet_id is null and asset = 'USD' and kind = 'prepaid'),
               0)
           - coalesce(sum(change) over (order by id desc rows between unbounded preceding
             and 1 preceding), 0))::text after
         from newest order by newest.id desc limit $2 offset $3`,
        [caller.workspaceId, limit, (page - 1) * limit],
      ),
      services.database.one<{ total: string }>(`select count(*)::text total ${from}`, [
        caller.workspaceId,
      ]),
    ])
    return {
      body: {
        data: rows.map((row) => {
          const change = BigInt(row.amount)
          return {
            id: row.id,
            type: TYPES[row.kind],
            amount: exactUsd(row.kind !== 'prepaid-adjust' && change < 0n ? -change : change),
            balance_change: exactUsd(row.kind === 'prepaid-charge' ? 0n : change),
            balance_after: exactUsd(BigInt(row.after)),
            transaction_id:
              OF_TRANSACTIONS.has(row.kind) && !row.reference.startsWith(ORDER)
                ? row.reference
                : null,
            order_id: row.reference.startsWith(ORDER) ? row.reference.slice(ORDER.length) : null,
            created_at: row.created_at.toISOString(),
          }
        }),
        page,
        limit,
        total: Number(count?.total ?? 0),
      },
    }
  },
})
