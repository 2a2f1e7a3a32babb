import { z } from 'zod'
import { assertKnownAsset } from '../assets/find-asset.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { assetName, integer, oneOf, pageOf, pageQuery } from '../../core/http/schemas.ts'
import { dateOf, readList, type ListQuestion } from '../../core/database/counted.ts'
import {
  KIND_OF_TYPE,
  presentNow,
  STATUSES,
  transactionNowShape,
  TYPE_NAMES,
} from '../../core/engine/present.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

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
/** SQL that selects the sub-account's addresses that have a label. */
const LABELLED = `select a.address from wallet_addresses a
  join wallets w on w.workspace_id = a.workspace_id and w.id = a.wallet_id
  where w.sub_account_id = $1 and w.workspace_id = $2`

/**
 * Returns a hash in every letter case in which its chain may write it. Hexadecimal hashes ignore
 * case; base58 hashes (Solana) do not.
 */
const spellings = (hash: string): string[] =>
  HEX_HASH.test(hash) ? [hash, hash.toLowerCase(), hash.toUpperCase()] : [hash]

/**
 * Number of characters of a memo that the index contains (`migrations/038_memo_beginnings.sql`).
 */
const BEGINNING_MAX = 100
/**
 * Maximum number of transactions found by the beginning of their memo, because all of them must be
 * read to return the newest first.
 */
const BEGUN_MAX = 1000

/**
 * Returns the ids of the sub-account's transactions whose memo begins with a text. The bounds are
 * compared by bytes, in the order of the index: a condition with `like` would not use the index in
 * a prepared statement. U+10FFFF is the highest character.
 * @throws ApiError `INVALID_REQUEST` if there are more than {@link BEGUN_MAX}
 */
async function idsByBeginning(
  { database }: Services,
  caller: Caller,
  beginning: string,
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `select id from transactions where workspace_id = $2 and sub_account_id = $1
       and lower(left(memo, 100)) ~>=~ lower($3)
         and lower(left(memo, 100)) ~<~ (lower($3) || chr(1114111)) limit $4`,
    [caller.subAccountId, caller.workspaceId, beginning, BEGUN_MAX + 1],
  )
  if (rows.length <= BEGUN_MAX) return rows.map(({ id }) => id)
  const message = `memo_begins: more than ${BEGUN_MAX} transactions have a memo with this prefix; send a longer prefix`
  throw new ApiError('INVALID_REQUEST', message, { field: 'memo_begins' })
}

/** Query parameters that filter a list of transactions. */
export const transactionFilter = {
  asset: assetName.optional(),
  before: integer(0, INT32_MAX, 'Only records created before this Unix time in seconds').optional(),
  after: integer(0, INT32_MAX, 'Only records created after this Unix time in seconds').optional(),
  source_type: oneOf(PLACES).optional(),
  source_id: word('Source address or label').optional(),
  dest_type: oneOf(PLACES).optional(),
  dest_id: word('Destination address or label').optional(),
  address: word(
    'Source or destination address, in any letter case. For labels use source_id and dest_id',
  ).optional(),
  status: oneOf(STATUSES).optional(),
  id: word('Platform id or hash on the chain').optional(),
  sequence_id: word('The idempotency key of the request, exact match').optional(),
  memo: z
    .string()
    .max(1000)
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .meta({ description: 'The complete memo, exact match', minLength: 1 })
    .optional(),
  memo_begins: z
    .string()
    .min(1)
    .max(BEGINNING_MAX)
    .refine((value) => !value.includes('\0'), 'must not contain NUL')
    .meta({
      description: `Prefix of the memo; the letters a to z match in any case. The request fails with 400 if more than ${BEGUN_MAX} memos of the sub-account match`,
    })
    .optional(),
  type: oneOf(
    TYPE_NAMES,
    'Only transactions of this type. Fuel, Sweep and other transactions that the platform creates itself are returned only if this selects them',
  ).optional(),
}

/**
 * Lists the sub-account's transactions, newest first. Fuel and sweeps are listed only if a filter
 * asks for them.
 */
export const listTransactions = endpoint({
  id: 'listTransactions',
  tag: 'Transactions',
  description:
    'Returns transactions, newest first, in pages. Filters are combined with AND. Transactions that the platform creates itself, such as sweeps and fuel, are listed only if a filter selects them.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/transactions',
  summary: 'List transactions',
  access: 'read',
  query: z.strictObject({ ...transactionFilter, ...pageQuery }),
  response: pageOf(transactionNowShape),
  async handler({ caller, query }, services: Services) {
    const { page, limit } = query
    const { rows, total } = await readList<TransactionRow>(
      services.database,
      {
        list: 'transactions',
        columns: '*',
        ...(await matching(services, caller, query)),
      },
      page,
      limit,
    )
    return {
      body: { data: rows.map((row) => presentNow(row, services.registry)), page, limit, total },
    }
  },
})

/** Kinds listed by default; the platform creates the others by itself. */
const LISTED_KINDS = ['WITHDRAWAL', 'DEPOSIT', 'STAKE', 'UNSTAKE', 'RELEASE']

/**
 * Rare kinds, which have an index of their own. Without it, a page of them would be searched among
 * all other kinds.
 */
const RARE_KINDS = new Set(['STAKE', 'UNSTAKE', 'RELEASE', 'DRAIN', 'LEND', 'LEND_BACK'])

type TransactionFilter = z.output<z.ZodObject<typeof transactionFilter>>

/**
 * Whether an address of the sub-account has this label. A condition on the address alone uses the
 * order of the list, so labels are searched only if such a label exists.
 */
async function isLabel(
  services: Services,
  caller: Caller,
  label: string | undefined,
): Promise<boolean> {
  if (label === undefined) return false
  const rows = await services.database.query(`${LABELLED} and a.label = $3 limit 1`, [
    caller.subAccountId,
    caller.workspaceId,
    label,
  ])
  return rows.length > 0
}

/** Returns the condition on the source: its address, or the label of an address. */
const sourceCondition = (isLabel: boolean) => (at: string) =>
  isLabel
    ? `(lower(source_id) = lower(${at}) or source_id in (${LABELLED} and a.label = ${at}))`
    : `lower(source_id) = lower(${at})`

/** Returns the condition on the destination: its address, or the label of an address. */
const destinationCondition = (isLabel: boolean) => (at: string) =>
  isLabel
    ? `(lower(destination_id) = lower(${at}) or exists (${LABELLED} and a.label = ${at} and a.address = destination_id
      and a.address_tag is not distinct from transactions.address_tag))`
    : `lower(destination_id) = lower(${at})`

/** Returns the column whose index selects the fewest rows for a filter. */
const indexedColumn = (status: string | undefined, kinds: string | readonly string[] | undefined) =>
  status === 'failed' || status === 'pending'
    ? 'status'
    : RARE_KINDS.has(String(kinds))
      ? 'kind'
      : 'asset'

/** Whether a filter uses only columns for which row counts are stored, besides the time. */
const isCounted = (query: TransactionFilter): boolean =>
  [
    query.source_id,
    query.dest_id,
    query.address,
    query.id,
    query.sequence_id,
    query.memo,
    query.memo_begins,
  ].every((value) => value === undefined)

/**
 * Converts a filter to an SQL condition with its parameter values, for the transactions of a
 * sub-account.
 */
export async function matching(
  services: Services,
  caller: Caller,
  query: TransactionFilter,
): Promise<Omit<ListQuestion, 'list' | 'columns'>> {
  assertKnownAsset(services, query.asset)
  const values: unknown[] = [caller.subAccountId, caller.workspaceId]
  const conditions = ['workspace_id = $2 and sub_account_id = $1']
  // The condition contains only the given filters, so that each filter can use its index.
  const where = (value: unknown, condition: (at: string) => string): void => {
    if (value === undefined) return
    values.push(value)
    conditions.push(condition(`$${values.length}`))
  }
  const counted: Record<string, string | readonly string[]> = {}
  /** Adds a condition on a column for which row counts are stored. */
  const whereCounted = (column: string, value: string | undefined): void => {
    where(value, (at) => `${column} = ${at}`)
    if (value !== undefined) counted[column] = value
  }
  /**
   * Like `whereCounted`, for values defined by the platform. They are part of the SQL text, so that a
   * partial index on one value can be used.
   */
  const whereConstant = (column: string, value: string | undefined): void => {
    if (value === undefined) return
    conditions.push(`${column} = '${value}'`)
    counted[column] = value
  }
  whereCounted('asset', query.asset)
  where(query.before, (at) => `created_at < to_timestamp(${at}::bigint)`)
  where(query.after, (at) => `created_at > to_timestamp(${at}::bigint)`)
  whereCounted('source_type', query.source_type)
  const [isSourceLabel, isDestinationLabel] = await Promise.all([
    isLabel(services, caller, query.source_id),
    isLabel(services, caller, query.dest_id),
  ])
  where(query.source_id, sourceCondition(isSourceLabel))
  whereCounted('destination_type', query.dest_type)
  where(query.dest_id, destinationCondition(isDestinationLabel))
  // Each side has its own index, beginning with the workspace and the sub-account; PostgreSQL
  // combines the two.
  where(
    query.address,
    (at) => `(lower(source_id) = lower(${at}) or lower(destination_id) = lower(${at}))`,
  )
  whereConstant('status', query.status)
  if (query.id !== undefined && UUID.test(query.id)) where(query.id, (at) => `id = ${at}::uuid`)
  else if (query.id !== undefined) where(spellings(query.id), (at) => `hash = any(${at}::text[])`)
  where(query.sequence_id, (at) => `sequence_id = ${at}`)
  where(query.memo, (at) => `lower(left(memo, 100)) = lower(left(${at}, 100)) and memo = ${at}`)
  if (query.memo_begins !== undefined) {
    // The ids are passed as an array that the planner cannot inspect: if it knew their number, it
    // would scan the list's index from the newest entry until it has a full page, however old the
    // matches are.
    where(
      await idsByBeginning(services, caller, query.memo_begins),
      (at) => `id = any(array(select unnest(${at}::uuid[])))`,
    )
  }
  whereConstant('kind', query.type === undefined ? undefined : KIND_OF_TYPE.get(query.type))
  const isInternal =
    query.source_type === 'GAS_TANK' ||
    query.dest_type === 'GAS_TANK' ||
    query.dest_type === 'OMNIBUS'
  if (query.type === undefined && !isInternal) {
    conditions.push(`kind in (${LISTED_KINDS.map((kind) => `'${kind}'`).join(', ')})`)
    counted['kind'] = LISTED_KINDS
  }
  return {
    where: conditions.join(' and '),
    values,
    filters: isCounted(query) ? counted : null,
    from: dateOf(query.after),
    before: dateOf(query.before),
    indexed: indexedColumn(query.status, counted['kind']),
  }
}
