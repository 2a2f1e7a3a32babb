import { createHash } from 'node:crypto'

/** A flat body, whatever the order of its fields. */
export const hashPayload = (body: object): string =>
  createHash('sha256')
    .update(JSON.stringify(body, Object.keys(body).sort()))
    .digest('hex')

/**
 * Stands in place of a payload's hash for a transaction that was adopted from the nodes' records:
 * its request is lost.
 */
export const ADOPTED_PAYLOAD = 'adopted'

/**
 * Stands in place of a payload's hash for a request whose fields cannot be read: it equals none
 * that is stored.
 */
export const UNREADABLE_PAYLOAD = 'unreadable'

/**
 * Whether a `sequence_id` comes again with the payload of its first use; true where that payload is
 * lost.
 */
export const isSamePayload = (known: string | undefined, payloadHash: string): boolean =>
  known === payloadHash || known === ADOPTED_PAYLOAD
