import type { SignedRequest } from '@custody/request-auth'
import type { Database } from '../database/pool.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  database: Database
}

/**
 * Returns a caller's request in the form that the signer nodes accept, with the latest receipts,
 * which may arrive after the row was inserted.
 */
export async function receiptsOf(
  { database }: Services,
  request: TransactionRow['request'],
  table: 'transactions' | 'replacements',
  id: string,
): Promise<{ request: SignedRequest; receipts: unknown[] }> {
  if (!request) throw new Error('an order has no request')
  const { api_key: _, ...signed } = request
  const fresh = await database.one<{ receipts: unknown[] }>(
    `select receipts from ${table} where id = $1`,
    [id],
  )
  return { request: signed, receipts: fresh?.receipts ?? [] }
}
