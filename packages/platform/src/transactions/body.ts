import { z } from 'zod'
import { assetName, decimal, text } from '../http/schemas.ts'

/** Body of POST /dac/v1/transaction. Unknown fields are refused: a misspelt `address_tag` dropped in silence loses money. */
export const transactionBody = z.strictObject({
  asset: assetName,
  amount: decimal,
  destination_address: text(500),
  destination_type: z.literal('EXTERNAL'),
  source_type: z.literal('INTERNAL'),
  sequence_id: text(200).optional().meta({ description: 'Idempotency key, unique within the wallet' }),
  memo: text(1000).optional().meta({ description: 'Your own note; never put on chain' }),
  address_tag: text(200).optional().meta({ description: 'Destination tag or memo of networks that have one' }),
  fee_rate: decimal.optional().meta({ description: 'In the unit of the chain family; the signer nodes hold to it' }),
  fee_level: z.enum(['low', 'medium', 'high']).optional(),
  type: z.literal('Withdraw').optional().meta({ description: 'Accepted from older clients; means nothing' }),
  ts: z.unknown().optional().meta({ description: 'Accepted from older clients; means nothing' }),
})

export type TransactionBody = z.output<typeof transactionBody>
