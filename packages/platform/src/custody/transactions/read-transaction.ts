import { z } from 'zod'
import { LIST_MAX } from '../../core/bounds.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findTransaction } from './find-transaction.ts'
import { presentNow, transactionNowShape } from '../../core/engine/present.ts'
import { replacementsOf } from '../../core/engine/replacement.ts'
import { presentReplacement, replacementShape } from './present-replacement.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'

interface Services {
  database: Database
  registry: Registry
}

/** Returns one transaction of the caller's sub-account by its platform id. */
export const readTransaction = endpoint({
  id: 'readTransaction',
  tag: 'Transactions',
  description:
    'Returns one transaction of the sub-account, with the transactions that replaced it on the chain (`replacements`). `status` is for programs; `sub_status` contains the step.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/transaction/{id}',
  summary: 'Read a transaction',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: transactionNowShape
    .extend({ replacements: z.array(replacementShape).max(LIST_MAX).optional() })
    .meta({ id: 'TransactionWithReplacements' }),
  async handler({ caller, params }, services: Services) {
    const row = await findTransaction(services, caller, params.id)
    const replacements =
      row.kind === 'WITHDRAWAL' ? await replacementsOf(services.database, row) : []
    return {
      body: {
        ...presentNow(row, services.registry),
        ...(replacements.length > 0
          ? { replacements: replacements.slice(-LIST_MAX).map(presentReplacement) }
          : {}),
      },
    }
  },
})
