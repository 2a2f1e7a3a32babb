import { z } from 'zod'
import { assertKnownAsset } from '../assets/find-asset.ts'
import { endpoint } from '../http/endpoint.ts'
import { assetName, integer, oneOf, pageQuery } from '../http/schemas.ts'
import { KIND_OF_TYPE, presentTransaction, STATUSES, transactionShape, TYPE_NAMES, type TransactionRow } from './present.ts'

const INT32_MAX = 2_147_483_647
const PLACES = ['INTERNAL', 'EXTERNAL', 'GAS_TANK', 'OMNIBUS', 'STAKING'] as const

const word = (description: string) => z.string().min(1).max(200).refine((value) => !value.includes('\0'), 'must not contain NUL').meta({ description })

/** Transactions of the sub-account, newest first. Fuel and sweeps are shown only where a filter asks for them. */
export const listTransactions = endpoint({
  method: 'GET', path: '/dac/v1/transactions', summary: 'List transactions', access: 'read',
  query: z.strictObject({
    asset: assetName.optional(),
    before: integer(0, INT32_MAX, 'Created before this Unix time in seconds').optional(),
    after: integer(0, INT32_MAX, 'Created after this Unix time in seconds').optional(),
    source_type: oneOf(PLACES).optional(), source_id: word('Source address or label').optional(),
    dest_type: oneOf(PLACES).optional(), dest_id: word('Destination address or label').optional(),
    status: oneOf(STATUSES).optional(), id: word('Platform id or hash on the chain').optional(),
    memo: z.string().max(1000).refine((value) => !value.includes('\0'), 'must not contain NUL').optional(),
    type: oneOf(TYPE_NAMES, 'Fuel, Sweep and what else the platform does by itself is shown only where it is asked for').optional(),
    ...pageQuery,
  }),
  response: z.object({ data: z.array(transactionShape), page: z.int(), limit: z.int(), total: z.int() }),
  async handler({ services, caller, query }) {
    assertKnownAsset(services, query.asset)
    const { page, limit } = query
    const kind = query.type === undefined ? null : KIND_OF_TYPE.get(query.type)
    const internal = query.source_type === 'GAS_TANK' || query.dest_type === 'GAS_TANK' || query.dest_type === 'OMNIBUS'
    const where = `
      sub_account_id = $1
      and ($2::text is null or asset = $2)
      and ($3::bigint is null or created_at < to_timestamp($3))
      and ($4::bigint is null or created_at > to_timestamp($4))
      and ($5::text is null or source_type = $5)
      and ($6::text is null or source_id = $6 or lower(source_id) = lower($6) or source_id in (select a.address from wallet_addresses a join wallets w on w.id = a.wallet_id where w.sub_account_id = $1 and a.label = $6))
      and ($7::text is null or destination_type = $7)
      and ($8::text is null or destination_id = $8 or lower(destination_id) = lower($8) or exists (select 1 from wallet_addresses a join wallets w on w.id = a.wallet_id where w.sub_account_id = $1 and a.label = $8 and a.address = destination_id and a.address_tag is not distinct from transactions.address_tag))
      and ($9::text is null or status = $9)
      and ($10::text is null or id::text = lower($10) or hash = $10 or hash = lower($10))
      and ($11::text is null or memo = $11)
      and case when $12::text is not null then kind = $12 when $13 then true else kind in ('WITHDRAWAL', 'DEPOSIT', 'STAKE', 'UNSTAKE', 'RELEASE') end`
    const values = [
      caller.subAccountId, query.asset ?? null, query.before ?? null, query.after ?? null, query.source_type ?? null, query.source_id ?? null,
      query.dest_type ?? null, query.dest_id ?? null, query.status ?? null, query.id ?? null, query.memo ?? null, kind, internal,
    ]
    const [rows, count] = await Promise.all([
      services.database.query<TransactionRow>(`select * from transactions where ${where} order by created_at desc, id desc limit $14 offset $15`, [...values, limit, (page - 1) * limit]),
      services.database.one<{ total: string }>(`select count(*)::text total from transactions where ${where}`, values),
    ])
    return { body: { data: rows.map((row) => presentTransaction(row, services.registry)), page, limit, total: Number(count?.total ?? 0) } }
  },
})
