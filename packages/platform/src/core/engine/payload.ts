import { createHash } from 'node:crypto'

/**
 * Returns the SHA-256 hash of a flat request body, in hex, independent of the order of its fields.
 */
export const hashPayload = (body: object): string =>
  createHash('sha256')
    .update(JSON.stringify(body, Object.keys(body).sort()))
    .digest('hex')

/**
 * Placeholder for the payload hash of a transaction that was adopted from the signer nodes'
 * records, because its request is lost.
 */
export const ADOPTED_PAYLOAD = 'adopted'

/**
 * Placeholder for the payload hash of a request whose fields cannot be read. It never equals a
 * stored hash.
 */
export const UNREADABLE_PAYLOAD = 'unreadable'

/**
 * Whether a repeated `sequence_id` has the same payload as its first use; true if the first payload
 * is lost.
 */
export const isSamePayload = (existing: string | undefined, payloadHash: string): boolean =>
  existing === payloadHash || existing === ADOPTED_PAYLOAD
