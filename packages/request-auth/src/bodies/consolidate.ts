import { z } from 'zod'
import { JsonNumber } from '../json.ts'
import { assetName, optional, positive, sequenceId } from './fields.ts'

/** Largest number of coins that a request may leave. No wallet has as many. */
const COINS_MAX = 1_000_000
const INTEGER = /^[1-9]\d{0,6}$/

/** A number of coins, as digits without sign, fraction and exponent. */
const coins = z
  .custom<JsonNumber>((value) => value instanceof JsonNumber, 'must be an integer')
  .transform((value, context): number => {
    const number = INTEGER.test(value.text) ? Number(value.text) : Number.NaN
    if (number <= COINS_MAX) return number
    context.addIssue({ code: 'custom', message: `must be an integer from 1 to ${COINS_MAX}` })
    return z.NEVER
  })
  .meta({
    type: 'integer',
    minimum: 1,
    maximum: COINS_MAX,
    description: 'Number of free coins at which merging ends',
  })

/**
 * Body of POST /dac/v1/wallets/{id}/consolidate. The signer nodes do not know the IDs of wallets, so
 * without `asset` they accept the request for one transaction of any of its sub-account's coins.
 */
export const consolidateBody = z.strictObject({
  asset: optional(assetName).meta({
    description:
      'Asset of the wallet. With it, the signer nodes accept the request for no other coin; recommended',
  }),
  max_fee_rate: positive.meta({
    description:
      'Maximum network fee rate, in the unit of the chain family; the signer nodes enforce it',
  }),
  target_coins: coins,
  min_value: optional(positive).meta({
    description: 'Coins below this amount are not merged',
  }),
  sequence_id: sequenceId.meta({
    description: 'Idempotency key, unique within the wallet; shared with transfers',
  }),
})

/** Parsed form of {@link consolidateBody}. */
export type ConsolidateBody = z.output<typeof consolidateBody>
