import type { SignedRequest } from '@custody/request-auth'
import { requestReplacement, type ReplacementKind } from '../../core/engine/replacement.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Caller } from '../../core/http/endpoint.ts'

interface Services {
  environment: Environment
  database: Database
}

interface ReplacementRequest {
  kind: ReplacementKind
  signed: SignedRequest
  feeRate: string | null
  feeLevel: string | null
}

/**
 * Stores a caller's requested replacement for a worker to process.
 * @returns id of the replacement
 * @throws ApiError `REPLACEMENT_PENDING` if another replacement is in progress
 */
export async function askForReplacement(
  services: Services,
  caller: Caller,
  row: TransactionRow,
  { signed, ...params }: ReplacementRequest,
): Promise<string> {
  const id = services.environment.uuid()
  const request = { api_key: caller.apiKey, ...signed }
  await services.database.transaction((tx) =>
    requestReplacement(tx, { id, of: row, request, ...params }),
  )
  return id
}
