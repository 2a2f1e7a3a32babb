import type { Binding } from './types.ts'
import { KekError } from './errors.ts'

export const DATA_KEY_BYTES = 32

/** The words of a binding as bytes, the same for the same words in whatever order. */
export function associatedData(binding: Binding): Buffer {
  const sorted = Object.entries(binding).sort(([a], [b]) => (a < b ? -1 : 1))
  return Buffer.from(`custody/key-encryption/v1\n${JSON.stringify(sorted)}`)
}

/** @throws {KekError} REFUSED where it has not the length of a data key */
export function dataKeyOf(bytes: Uint8Array, provider: string): Uint8Array {
  if (bytes.length !== DATA_KEY_BYTES)
    throw new KekError('REFUSED', `${provider}: the decrypted data is not a data key`)
  return bytes
}

/** Base64 in its one spelling, bounded. @throws {KekError} REFUSED */
export function fromBase64(text: unknown, provider: string): Buffer {
  const bytes =
    typeof text === 'string' && text.length < 16_384 ? Buffer.from(text, 'base64') : null
  if (!bytes || bytes.toString('base64') !== text)
    throw new KekError('REFUSED', `${provider}: a response or a wrapped key is not base64`)
  return bytes
}
