import type { Registry } from '@custody/chains'
import type { JsonNumber } from '@custody/request-auth'
import { z } from 'zod'
import { INT_MAX } from '../../core/bounds.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { BYTE_ORDER_MARK, byteOrderMark, csvLine, csvTime } from '../../core/csv.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'
import { findAccounts, PARTS, type Parts, type StatementAccount } from './accounts.ts'
import { readBalances, readMovements, totalOf, type Period, type Position } from './movements.ts'
import {
  balanceAfter,
  periodOf,
  presentBalance,
  presentMovement,
  statementQuery,
} from './statement.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

const BATCH = 500

const COLUMNS = [
  'at',
  'type',
  'asset',
  'amount',
  'network_fee',
  'balance',
  ...PARTS,
  'tank_fee',
  'tank_fee_asset',
  'transaction_id',
  'transaction_asset',
  'hash',
  'counterparty',
  'sequence_id',
  'entry',
] as const

type Line = Partial<Record<(typeof COLUMNS)[number], string | JsonNumber | null>>

const lineOf = (line: Line): string => csvLine(COLUMNS.map((column) => line[column] ?? null))

const EXAMPLE = lineOf(Object.fromEntries(COLUMNS.map((column) => [column, column])))

/**
 * Exports statements as CSV. The first line of an asset is the opening balance and its last line the
 * closing balance; the columns of parts contain balances there, and changes in the lines between.
 */
export const exportStatement = endpoint({
  id: 'exportStatement',
  tag: 'Wallets',
  description:
    'Returns a statement of any length as CSV (UTF-8), or without `asset` those of all wallets or gas tanks, one after the other. The first line of an asset is its opening balance, the last line is its closing balance. In a spreadsheet, the sum of the `amount` of an asset minus the sum of its `network_fee` is the closing balance minus the opening balance. Times are in UTC, in the form that spreadsheets read as dates.',
  errors: ['UNSUPPORTED_ASSET', 'WALLET_MISSING', 'CONCURRENT_REQUEST'],
  method: 'GET',
  path: '/dac/v1/statement/export',
  summary: 'Export statements of wallets or gas tanks as CSV',
  access: 'read',
  heavy: { kind: 'export', weight: 20, waiting: 0 },
  query: z.strictObject({
    ...statementQuery,
    asset: assetName
      .optional()
      .meta({ description: 'Asset of the wallet or gas tank; by default all' }),
    bom: byteOrderMark,
  }),
  mediaType: 'text/csv',
  response: z
    .string()
    .max(INT_MAX)
    .meta({ description: 'Lines of CSV', examples: [EXAMPLE] }),
  async handler({ caller, query }, services: Services) {
    const period = periodOf(services, query)
    const accounts = await findAccounts(services, caller, query)
    const { asset = 'all' } = query
    const name = ['statement', caller.workspace, caller.subAccount, query.account, asset]
      .map((part) => part.replaceAll(/[^\w.-]+/g, '_'))
      .join('-')
    return {
      headers: {
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="${name}.csv"`,
      },
      pieces: (signal) =>
        statementLines(services, { accounts, period, bom: query.bom === 'true' }, signal),
    }
  },
})

/** Which statements an export contains. */
export interface StatementExport {
  accounts: readonly StatementAccount[]
  period: Period
  /** Whether the file begins with a byte order mark. */
  bom: boolean
}

/** Yields the lines of statements in batches, after the line of column names. */
export async function* statementLines(
  services: Pick<Services, 'database' | 'registry'>,
  { accounts, period, bom }: StatementExport,
  signal: AbortSignal,
): AsyncGenerator<string> {
  yield `${bom ? BYTE_ORDER_MARK : ''}${csvLine(COLUMNS)}`
  for (const account of accounts) yield* accountLines(services, account, period, signal)
}

/**
 * Yields the lines of one statement in batches. The closing balance is the opening balance plus all
 * lines, so that a movement booked during the export cannot separate them.
 */
async function* accountLines(
  services: Pick<Services, 'database' | 'registry'>,
  account: StatementAccount,
  period: Period,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { database } = services
  const asset = account.asset.asset_name
  const { opening } = await readBalances(database, account, period, null)
  const sums: Parts = { ...opening }
  const balanceLine = (type: 'opening' | 'closing') => {
    const { total, ...parts } = presentBalance(sums, account)
    return lineOf({ type, asset, balance: total, ...parts })
  }
  yield balanceLine('opening')
  let after: Position | null = null
  let balance = totalOf(opening)
  while (!signal.aborted) {
    const movements = await readMovements(database, { account, period, after, limit: BATCH })
    let lines = ''
    for (const movement of movements) {
      for (const part of PARTS) sums[part] += movement.changes[part]
      balance = balanceAfter(balance, movement)
      const { id, changes, at, ...shown } = presentMovement(services, account, movement, balance)
      lines += lineOf({ at: csvTime(at), asset, entry: id, ...shown, ...changes })
    }
    if (lines !== '') yield lines
    const last = movements.at(-1)
    if (!last || movements.length < BATCH) {
      yield balanceLine('closing')
      return
    }
    after = last.position
  }
}
