/** In place of the hash of a request that nobody has any more: the transaction was adopted from the signer nodes' records. */
export const ADOPTED_PAYLOAD = 'adopted'

/** Whether a `sequence_id` is used again with the payload that it was used with, as far as anybody knows. */
export const isSamePayload = (known: string | undefined, payloadHash: string): boolean => known === payloadHash || known === ADOPTED_PAYLOAD
