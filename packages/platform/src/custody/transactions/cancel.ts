import { emptyBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findTransaction } from './find-transaction.ts'
import { presentNow, transactionNowShape } from '../../core/engine/present.ts'
import {
  openReplacement,
  UNSIGNED_STATES,
  WAITING_STATES,
  whyFinal,
} from '../../core/engine/replacement.ts'
import { askForReplacement } from './ask-for-replacement.ts'
import { assertUnspentChange, waitingAttempts } from '../../core/engine/attempts.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Receipts } from '../../core/signing/receipts.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
}

/**
 * Cancels a transfer. Before it is signed, it ends at no cost. After that, a payment to its own
 * address competes with it on the chain, if the chain allows replacement, and whichever is mined
 * decides.
 */
export const cancelTransaction = endpoint({
  id: 'cancelTransaction',
  tag: 'Transactions',
  description:
    'Cancels a transfer. Before it is signed, the cancellation costs nothing; afterwards, a competing payment to the wallet’s own address replaces it, on chains that support replacement. Repeating the request has no further effect.',
  errors: [
    'FORBIDDEN',
    'NOT_FOUND',
    'NOT_REPLACEABLE',
    'TRANSACTION_FINAL',
    'REPLACEMENT_PENDING',
    'NETWORK_UNAVAILABLE',
  ],
  method: 'POST',
  path: '/dac/v1/transaction/{id}/cancel',
  summary: 'Cancel an outgoing transfer',
  access: 'write',
  audit: { not: 'the transfer stores the request and its key' },
  params: z.strictObject({ id: pathId }),
  body: emptyBody,
  response: transactionNowShape,
  async handler({ caller, params, signed }, services: Services) {
    const row = await findTransaction(services, caller, params.id)
    const shown = async () => ({
      body: presentNow(await findTransaction(services, caller, row.id), services.registry),
    })
    const { network, replaceable } = services.networks.get(row.network)
    if (row.kind !== 'WITHDRAWAL')
      throw new ApiError('NOT_REPLACEABLE', 'id: only an outgoing transfer can be cancelled', {
        field: 'id',
      })
    if (row.state === 'CANCELLED') return shown()
    if (row.status !== 'pending')
      throw new ApiError('TRANSACTION_FINAL', `id: the transfer is already ${row.status}`, {
        field: 'id',
      })
    if (row.state === 'VOIDING') return shown()
    if ((await openReplacement(services.database, row))?.kind === 'CANCEL') return shown()
    if (!UNSIGNED_STATES.has(row.state)) {
      if (!replaceable)
        throw new ApiError(
          'NOT_REPLACEABLE',
          `id: the transfer is signed, and ${whyFinal(network)}`,
          { field: 'id' },
        )
      if (!WAITING_STATES.has(row.state)) {
        throw new ApiError(
          'REPLACEMENT_PENDING',
          'id: a speed-up of this transfer is in progress; try again in a few seconds',
          { field: 'id' },
        )
      }
      await assertUnspentChange(services.database, row, await waitingAttempts(services, row))
    }
    const id = await askForReplacement(services, caller, row, {
      kind: 'CANCEL',
      signed,
      feeRate: null,
      feeLevel: null,
    })
    void services.receipts.collect(row.workspace_id, id, signed, 'replacements')
    return shown()
  },
})
