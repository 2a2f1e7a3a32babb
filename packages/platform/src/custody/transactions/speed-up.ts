import { formatAmount, traitsOf, type Registry } from '@custody/chains'
import { speedUpBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { checkedFeeRate } from '../../core/engine/check-fee-rate.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findTransaction } from './find-transaction.ts'
import { presentNow, transactionNowShape } from '../../core/engine/present.ts'
import { isForward, NO_REPLACEMENT } from '../../core/engine/transaction.ts'
import { WAITING_STATES, whyFinal } from '../../core/engine/replacement.ts'
import { askForReplacement } from './ask-for-replacement.ts'
import { assertUnspentChange, waitingAttempts } from '../../core/engine/attempts.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
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
 * Pays a higher fee for a pending transfer: the same payment is sent again with a higher fee, and
 * only one of the two can be mined.
 */
export const speedUp = endpoint({
  id: 'speedUpTransaction',
  tag: 'Transactions',
  description:
    'Replaces a transaction that is waiting on the chain by one with a higher fee. The amount and the destination stay the same.',
  errors: [
    'FORBIDDEN',
    'NOT_FOUND',
    'NOT_REPLACEABLE',
    'TRANSACTION_FINAL',
    'REPLACEMENT_PENDING',
    'NETWORK_UNAVAILABLE',
    'INSUFFICIENT_BALANCE',
  ],
  example: { fee_level: 'high' },
  method: 'POST',
  path: '/dac/v1/transaction/{id}/speed-up',
  summary: 'Increase the network fee of a pending transfer',
  access: 'write',
  audit: { not: 'the transfer stores the request and its key' },
  params: z.strictObject({ id: pathId }),
  body: speedUpBody,
  response: transactionNowShape,
  async handler({ caller, params, body, signed }, services: Services) {
    const row = await findTransaction(services, caller, params.id)
    const { network, replaceable } = services.networks.get(row.network)
    if (row.kind !== 'WITHDRAWAL')
      throw new ApiError('NOT_REPLACEABLE', 'id: only an outgoing transfer can be sped up', {
        field: 'id',
      })
    if (isForward(row))
      throw new ApiError('NOT_REPLACEABLE', `id: ${NO_REPLACEMENT}`, { field: 'id' })
    if (row.status !== 'pending')
      throw new ApiError('TRANSACTION_FINAL', `id: the transfer is already ${row.status}`, {
        field: 'id',
      })
    if (!replaceable)
      throw new ApiError('NOT_REPLACEABLE', `id: ${whyFinal(network)}`, { field: 'id' })
    if (!WAITING_STATES.has(row.state)) {
      throw new ApiError(
        'NOT_REPLACEABLE',
        `id: the transfer is not waiting for a block (${row.state}); it cannot be sped up now`,
        { field: 'id' },
      )
    }
    if (body.fee_rate !== undefined && body.fee_level !== undefined) {
      throw new ApiError(
        'INVALID_REQUEST',
        'fee_level: send either fee_rate or fee_level, not both',
        { field: 'fee_level' },
      )
    }
    const attempts = await waitingAttempts(services, row)
    await assertUnspentChange(services.database, row, attempts)
    const least = await replaceable.leastRate(row, attempts)
    if (
      body.fee_rate !== undefined &&
      checkedFeeRate(body.fee_rate, network, services.registry) < least
    ) {
      const rate = `${formatAmount(least, traitsOf(network).feeRateDecimals)} ${network.fee_rate_unit}`
      throw new ApiError(
        'INVALID_REQUEST',
        `fee_rate: must be at least ${rate} to replace the waiting transaction`,
        { field: 'fee_rate' },
      )
    }
    const id = await askForReplacement(services, caller, row, {
      kind: 'SPEED_UP',
      signed,
      feeRate: body.fee_rate ?? null,
      feeLevel: body.fee_level ?? null,
    })
    void services.receipts.collect(row.workspace_id, id, signed, 'replacements')
    return { body: presentNow(await findTransaction(services, caller, row.id), services.registry) }
  },
})
