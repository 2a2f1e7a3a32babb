import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../http/endpoint.ts'
import { KIND_OF_TYPE, presentTransaction, transactionShape, type TransactionRow } from './present.ts'

const LIMIT_DEFAULT = 50
const LIMIT_MAX = 500
const INT32_MAX = 2_147_483_647

const integer = (min: number, max: number) => z.string()
  .regex(/^\d{1,10}$/, `must be an integer from ${min} to ${max}`)
  .transform(Number).refine((value) => value >= min && value <= max, `must be an integer from ${min} to ${max}`)
const word = z.string().min(1).max(200).refine((value) => !value.includes('\0'), 'must not contain NUL')

/** Transactions of the sub-account, newest first. Fuel and sweeps are shown only where a filter asks for them. */
export const listTransactions = endpoint({
  method: 'GET', path: '/dac/v1/transactions', summary: 'List transactions', access: 'read',
  query: z.strictObject({
    asset: word.optional(), before: integer(0, INT32_MAX).optional(), after: integer(0, INT32_MAX).optional(),
    source_type: word.optional(), source_id: word.optional(), dest_type: word.optional(), dest_id: word.optional(),
    status: word.optional(), page: integer(1, 1_000_000_000).optional(), limit: integer(1, LIMIT_MAX).optional(),
    id: word.optional(), memo: z.string().max(1000).refine((value) => !value.includes('\0'), 'must not contain NUL').optional(),
    type: word.optional().meta({ description: 'Withdraw, Deposit, Stake, Unstake, Release; Fuel and Sweep show what the platform does by itself' }),
  }),
  response: z.object({ data: z.array(transactionShape), page: z.int(), limit: z.int(), total: z.int() }),
  async handler({ services, caller, query }) {
    // A misspelt ticker would look like an empty history; one whose network is away now has a history all the same.
    if (query.asset !== undefined && !services.registry.asset(query.asset)) findAsset(services, query.asset)
    const page = query.page ?? 1
    const limit = query.limit ?? LIMIT_DEFAULT
    const lower = (value: string | undefined) => value?.toLowerCase() ?? null
    const kind = query.type === undefined ? null : (KIND_OF_TYPE.get(query.type.toLowerCase()) ?? 'NONE')
    const internal = ['gas_tank'].includes(lower(query.source_type) ?? '') || ['gas_tank', 'omnibus'].includes(lower(query.dest_type) ?? '')
    const where = `
      sub_account_id = $1
      and ($2::text is null or asset = $2)
      and ($3::bigint is null or created_at < to_timestamp($3))
      and ($4::bigint is null or created_at > to_timestamp($4))
      and ($5::text is null or lower(source_type) = $5)
      and ($6::text is null or source_id = $6 or lower(source_id) = lower($6) or source_id in (select a.address from wallet_addresses a join wallets w on w.id = a.wallet_id where w.sub_account_id = $1 and a.label = $6))
      and ($7::text is null or lower(destination_type) = $7)
      and ($8::text is null or destination_id = $8 or lower(destination_id) = lower($8) or exists (select 1 from wallet_addresses a join wallets w on w.id = a.wallet_id where w.sub_account_id = $1 and a.label = $8 and a.address = destination_id and a.address_tag is not distinct from transactions.address_tag))
      and ($9::text is null or status = $9)
      and ($10::text is null or id::text = lower($10) or hash = $10 or hash = lower($10))
      and ($11::text is null or memo = $11)
      and case when $12::text is not null then kind = $12 when $13 then true else kind in ('WITHDRAWAL', 'DEPOSIT', 'STAKE', 'UNSTAKE', 'RELEASE') end`
    const values = [
      caller.subAccountId, query.asset ?? null, query.before ?? null, query.after ?? null, lower(query.source_type), query.source_id ?? null,
      lower(query.dest_type), query.dest_id ?? null, lower(query.status), query.id ?? null, query.memo ?? null, kind, internal,
    ]
    const [rows, count] = await Promise.all([
      services.database.query<TransactionRow>(`select * from transactions where ${where} order by created_at desc, id desc limit $14 offset $15`, [...values, limit, (page - 1) * limit]),
      services.database.one<{ total: string }>(`select count(*)::text total from transactions where ${where}`, values),
    ])
    return { body: { data: rows.map((row) => presentTransaction(row, services.registry)), page, limit, total: Number(count?.total ?? 0) } }
  },
})
