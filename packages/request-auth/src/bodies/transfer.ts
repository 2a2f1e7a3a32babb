import { z } from 'zod'
import { JsonNumber } from '../json.ts'
import {
  address,
  assetName,
  feeLevel,
  optional,
  positive,
  sequenceId,
  tag,
  text,
} from './fields.ts'

/** Upper bound of `ts`: a Unix time in any unit down to nanoseconds. It may also be a string. */
const TS_MAX = 10_000_000_000_000_000_000
const TS_LENGTH_MAX = 100
const isTime = (value: number): boolean => value >= 0 && value <= TS_MAX

/**
 * Body of POST /dac/v1/transaction. Unknown fields are rejected, because silently ignoring a
 * misspelt `address_tag` would lose money.
 */
export const transferBody = z.strictObject({
  asset: assetName,
  amount: positive,
  destination_address: address,
  destination_type: z.enum(['EXTERNAL', 'EXCHANGE'], 'must be EXTERNAL or EXCHANGE').meta({
    description:
      'With EXCHANGE, destination_id is the id of an exchange account and destination_address is the exchange’s deposit address for the asset',
  }),
  source_type: z.literal('INTERNAL', 'must be INTERNAL'),
  sequence_id: optional(sequenceId).meta({
    description: 'Idempotency key, unique within the wallet',
  }),
  memo: optional(text(1000)).meta({
    description:
      'Your own note; never written to the chain. Rejected if it looks like a tag and the asset’s tag is missing',
  }),
  address_tag: optional(tag),
  destination_id: optional(text(100)).meta({
    description: 'Id of an exchange account; required if destination_type is EXCHANGE',
  }),
  confirm_address: optional(address).meta({
    description:
      'The exchange’s deposit address, repeated; required if it differs from the address of the last transfer',
  }),
  fee_rate: optional(positive).meta({
    description:
      'Maximum network fee rate, in the unit of the chain family; the signer nodes enforce it',
  }),
  fee_level: optional(feeLevel),
  type: optional(z.literal('Withdraw', 'must be Withdraw')).meta({
    description: 'Accepted from older clients and ignored',
  }),
  ts: optional(
    z
      .custom<JsonNumber | string>(
        (value) => typeof value === 'string' || value instanceof JsonNumber,
        'must be a number or a string',
      )
      .refine(
        (value) => typeof value !== 'string' || value.length <= TS_LENGTH_MAX,
        `must have at most ${TS_LENGTH_MAX} characters`,
      )
      .refine(
        (value) => typeof value === 'string' || isTime(Number(value.text)),
        `must be from 0 to ${TS_MAX}`,
      )
      .meta({
        anyOf: [
          { type: 'number', format: 'double', minimum: 0, maximum: TS_MAX },
          { type: 'string', maxLength: TS_LENGTH_MAX },
        ],
      }),
  ).meta({ description: 'Accepted from older clients and ignored' }),
})

/** Parsed form of {@link transferBody}. */
export type TransferBody = z.output<typeof transferBody>

/** Body of POST /dac/v1/transaction/{id}/speed-up. */
export const speedUpBody = z.strictObject({
  fee_rate: optional(positive).meta({
    description: 'New maximum network fee rate, in the unit of the chain family',
  }),
  fee_level: optional(feeLevel).meta({
    description: 'Fee level; high if neither `fee_rate` nor `fee_level` is present',
  }),
})

/** Body of POST /dac/v1/transaction/{id}/cancel, and of the deletion of a rule: an empty object. */
export const emptyBody = z.strictObject({})
