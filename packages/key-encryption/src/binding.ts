import type { Binding } from './types.ts'
import { KekError } from './errors.ts'

export const DATA_KEY_BYTES = 32

/** Encodes a binding as bytes, which do not depend on the order of its entries. */
export function associatedData(binding: Binding): Buffer {
  const sorted = Object.entries(binding).sort(([a], [b]) => (a < b ? -1 : 1))
  return Buffer.from(`custody/key-encryption/v1\n${JSON.stringify(sorted)}`)
}

/**
 * Checks the length of a data key.
 * @throws {KekError} REFUSED if the length is wrong
 */
export function dataKeyOf(bytes: Uint8Array, provider: string): Uint8Array {
  if (bytes.length !== DATA_KEY_BYTES)
    throw new KekError('REFUSED', `${provider}: the decrypted data is not a data key`)
  return bytes
}

/**
 * Decodes canonical base64 with a limited length.
 * @throws {KekError} REFUSED
 */
export function fromBase64(text: unknown, provider: string): Buffer {
  const bytes =
    typeof text === 'string' && text.length < 16_384 ? Buffer.from(text, 'base64') : null
  if (!bytes || bytes.toString('base64') !== text)
    throw new KekError('REFUSED', `${provider}: a response or a wrapped key is not base64`)
  return bytes
}
