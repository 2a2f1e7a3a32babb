import type { Payment, Refusal } from '../engine/chain.ts'

/** Tokens that are sent to their own contract are lost. */
export const toOwnContract = ({ asset, to }: Payment): Refusal | null =>
  asset.type === 'token' && to === asset.contract_address
    ? { field: 'destination_address', reason: 'is the token’s own contract; tokens sent there are lost' }
    : null
