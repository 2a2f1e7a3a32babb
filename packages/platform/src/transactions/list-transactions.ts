import { z } from 'zod'
import { assertKnownAsset } from '../assets/find-asset.ts'
import { endpoint, type Caller } from '../http/endpoint.ts'
import { assetName, integer, oneOf, pageQuery } from '../http/schemas.ts'
import { KIND_OF_TYPE, presentTransaction, STATUSES, transactionShape, TYPE_NAMES } from '../engine/present.ts'
import type { Services } from '../engine/services.ts'
import type { TransactionRow } from '../engine/transaction.ts'

const INT32_MAX = 2_147_483_647
const PLACES = ['INTERNAL', 'EXTERNAL', 'GAS_TANK', 'OMNIBUS', 'STAKING'] as const

const word = (description: string) =>
  z
    .string()
    .min(1)
    .max(200)
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .meta({ description })

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const HEX_HASH = /^(?:0x)?[0-9a-f]{40,}$/i
/** Addresses of the sub-account by their label. */
const LABELLED = 'select a.address from wallet_addresses a join wallets w on w.id = a.wallet_id where w.sub_account_id = $1'

/** A hash in every case in which its chain may write it: hexadecimal digits have none, base58 (Solana) has. */
const spellings = (hash: string): string[] => (HEX_HASH.test(hash) ? [hash, hash.toLowerCase(), hash.toUpperCase()] : [hash])

/** What a list of transactions can be asked for. */
export const transactionFilter = {
  asset: assetName.optional(),
  before: integer(0, INT32_MAX, 'Created before this Unix time in seconds').optional(),
  after: integer(0, INT32_MAX, 'Created after this Unix time in seconds').optional(),
  source_type: oneOf(PLACES).optional(),
  source_id: word('Source address or label').optional(),
  dest_type: oneOf(PLACES).optional(),
  dest_id: word('Destination address or label').optional(),
  status: oneOf(STATUSES).optional(),
  id: word('Platform id or hash on the chain').optional(),
  sequence_id: word('The idempotency key given at creation, exactly').optional(),
  memo: z
    .string()
    .max(1000)
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .optional(),
  type: oneOf(TYPE_NAMES, 'Fuel, Sweep and what else the platform does by itself is shown only where it is asked for').optional(),
}

/** Transactions of the sub-account, newest first. Fuel and sweeps are shown only where a filter asks for them. */
export const listTransactions = endpoint({
  id: 'listTransactions', tag: 'Transactions',
  description: 'Newest first, a page at a time. All filters hold together. What the platform does by itself, such as sweeps and '
    + 'fuel, is listed only where a filter asks for it.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/transactions',
  summary: 'List transactions',
  access: 'read',
  query: z.strictObject({ ...transactionFilter, ...pageQuery }),
  response: z.object({ data: z.array(transactionShape), page: z.int(), limit: z.int(), total: z.int() }),
  async handler({ services, caller, query }) {
    const { page, limit } = query
    const { found, values } = matching(services, caller, query)
    const [rows, count] = await Promise.all([
      services.database.query<TransactionRow>(
        `select * from transactions where ${found} order by created_at desc, id desc
         limit $${values.length + 1} offset $${values.length + 2}`,
        [...values, limit, (page - 1) * limit]
      ),
      services.database.one<{ total: string }>(`select count(*)::text total from transactions where ${found}`, values),
    ])
    return { body: { data: rows.map((row) => presentTransaction(row, services.registry)), page, limit, total: Number(count?.total ?? 0) } }
  },
})

/** The transactions of a sub-account that a filter asks for: a condition, with the values that it names. */
export function matching(
  services: Services, caller: Caller, query: z.output<z.ZodObject<typeof transactionFilter>>
): { found: string; values: unknown[] } {
  assertKnownAsset(services, query.asset)
  const values: unknown[] = [caller.subAccountId]
  const conditions = ['sub_account_id = $1']
  // Only what is asked for stands in the condition, so that each filter finds its index.
  const where = (value: unknown, condition: (at: string) => string): void => {
    if (value === undefined) return
    values.push(value)
    conditions.push(condition(`$${values.length}`))
  }
  where(query.asset, (at) => `asset = ${at}`)
  where(query.before, (at) => `created_at < to_timestamp(${at}::bigint)`)
  where(query.after, (at) => `created_at > to_timestamp(${at}::bigint)`)
  where(query.source_type, (at) => `source_type = ${at}`)
  where(
    query.source_id,
    (at) => `(source_id = ${at} or lower(source_id) = lower(${at}) or source_id in (${LABELLED} and a.label = ${at}))`
  )
  where(query.dest_type, (at) => `destination_type = ${at}`)
  where(
    query.dest_id,
    (at) => `(destination_id = ${at} or lower(destination_id) = lower(${at})
    or exists (${LABELLED} and a.label = ${at} and a.address = destination_id
      and a.address_tag is not distinct from transactions.address_tag))`
  )
  where(query.status, (at) => `status = ${at}`)
  if (query.id !== undefined && UUID.test(query.id)) where(query.id, (at) => `id = ${at}::uuid`)
  else if (query.id !== undefined) where(spellings(query.id), (at) => `hash = any(${at}::text[])`)
  where(query.sequence_id, (at) => `sequence_id = ${at}`)
  where(query.memo, (at) => `memo = ${at}`)
  where(query.type === undefined ? undefined : KIND_OF_TYPE.get(query.type), (at) => `kind = ${at}`)
  const isInternal = query.source_type === 'GAS_TANK' || query.dest_type === 'GAS_TANK' || query.dest_type === 'OMNIBUS'
  if (query.type === undefined && !isInternal) conditions.push(`kind in ('WITHDRAWAL', 'DEPOSIT', 'STAKE', 'UNSTAKE', 'RELEASE')`)
  return { found: conditions.join(' and '), values }
}
