import { oneLine } from '@custody/chains/terminal'
import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { matching, transactionFilter } from '../../custody/transactions/list-transactions.ts'
import { BYTE_ORDER_MARK, byteOrderMark, csvLine, csvTime } from '../../core/csv.ts'
import { SUB_ACCOUNT, subAccountParams } from './mirror.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

const BATCH = 500

const COLUMNS = [
  'id',
  'type',
  'status',
  'sub_status',
  'created_at',
  'confirmed_at',
  'asset',
  'amount',
  'amount_in_usd',
  'fee',
  'fee_asset',
  'platform_fee',
  'source_type',
  'source_id',
  'destination_type',
  'destination_id',
  'address_tag',
  'hash',
  'confirmations',
  'memo',
  'sequence_id',
  'failure_reason',
] as const

/**
 * Exports all transactions that match a filter, newest first. They are read in batches, so their
 * number is unlimited.
 */
export const exportTransactions = panelEndpoint({
  method: 'GET',
  path: `${SUB_ACCOUNT}/transactions/export`,
  summary: 'Export all matching transactions as CSV or JSON',
  needs: 'viewer',
  heavy: { kind: 'export', weight: 20, waiting: 0 },
  params: z.strictObject(subAccountParams),
  query: z.strictObject({
    format: z.enum(['csv', 'json']).default('csv'),
    bom: byteOrderMark,
    ...transactionFilter,
  }),
  async handler({ caller, query: { format, bom, ...filter } }, services: Services) {
    const { where, values } = await matching(services, caller, filter)
    const rows = (signal: AbortSignal) => read(services, where, values, signal)
    return {
      headers: {
        'content-type':
          format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8',
        'content-disposition': `attachment; filename="${fileName(caller, services)}.${format}"`,
      },
      pieces: (signal) =>
        format === 'csv' ? csv(rows(signal), bom === 'true') : json(rows(signal)),
    }
  },
})

type ExportedTransaction = ReturnType<typeof presentTransaction>

/**
 * Yields the transactions in batches. Each batch starts after the last row of the previous batch,
 * so that transactions that are created during the export do not shift the rows.
 */
async function* read(
  { database, registry }: Services,
  where: string,
  values: readonly unknown[],
  signal: AbortSignal,
): AsyncGenerator<ExportedTransaction[]> {
  let last: { made: string; id: string } | null = null
  while (!signal.aborted) {
    const n = values.length
    const rows: (TransactionRow & { made: string })[] = await database.query(
      `select *, created_at::text made from transactions where ${where}
       ${last === null ? '' : `and (created_at, id) < ($${n + 2}::timestamptz, $${n + 3}::uuid)`}
       order by created_at desc, id desc limit $${n + 1}`,
      [...values, BATCH, ...(last === null ? [] : [last.made, last.id])],
    )
    if (rows.length > 0) yield rows.map((row) => presentTransaction(row, registry))
    const end = rows.at(-1)
    if (!end || rows.length < BATCH) return
    last = { made: end.made, id: end.id }
  }
}

async function* csv(
  batches: AsyncIterable<ExportedTransaction[]>,
  isMarked: boolean,
): AsyncGenerator<string> {
  yield `${isMarked ? BYTE_ORDER_MARK : ''}${csvLine(COLUMNS)}`
  const cell = (row: ExportedTransaction, column: (typeof COLUMNS)[number]) =>
    column === 'created_at' || column === 'confirmed_at' ? csvTime(row[column]) : row[column]
  for await (const rows of batches)
    yield rows.map((row) => csvLine(COLUMNS.map((column) => cell(row, column)))).join('')
}

async function* json(batches: AsyncIterable<ExportedTransaction[]>): AsyncGenerator<string> {
  let between = '[\n'
  for await (const rows of batches) {
    // Unsafe characters can only occur in strings, where the escaped form has the same value.
    yield `${between}${rows.map((row) => oneLine(stringifyJson(row))).join(',\n')}`
    between = ',\n'
  }
  yield between === '[\n' ? '[]\n' : '\n]\n'
}

/**
 * Returns a file name with the sub-account and the day, in characters that every file system
 * accepts.
 */
const fileName = ({ workspace, subAccount }: Caller, { environment }: Services): string =>
  ['transactions', workspace, subAccount, new Date(environment.now()).toISOString().slice(0, 10)]
    .map((part) => part.replaceAll(/[^\w.-]+/g, '_'))
    .join('-')
