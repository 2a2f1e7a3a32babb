import { z } from 'zod'
import { address, optional, positive, sequenceId, textSchema } from './fields.ts'

/** The only asset that can be staked. */
export const STAKED_ASSET = 'TRX'

const sequence = optional(sequenceId).meta({
  description: 'Idempotency key, unique within the TRX wallet; shared with transfers',
})
const asset = z.literal(STAKED_ASSET, `must be ${STAKED_ASSET}`)

/** Body of POST /dav/v1/stake and /dav/v1/unstake. */
export const stakeBody = z.strictObject({
  asset,
  address: address.meta({
    ...textSchema(256),
    description: 'Tron address that receives the resource: the wallet’s own address or another one',
  }),
  resource: z.enum(['ENERGY', 'BANDWIDTH'], 'must be ENERGY or BANDWIDTH'),
  amount: positive,
  sequence_id: sequence,
})

/** Body of POST /dav/v1/release-unstaked. */
export const releaseBody = z.strictObject({ asset, address, sequence_id: sequence })
