import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/**
 * Returns the public ID of the object that a request creates: a UUID (version 8, RFC 9562) from
 * SHA-256(sub, nonce), so that every party that has the request can compute it.
 */
export function transactionId(sub: string, nonce: string): string {
  const digest = sha256(
    utf8ToBytes(JSON.stringify(['custody/transaction/v1', sub, nonce])),
  ).subarray(0, 16)
  digest[6] = ((digest[6] as number) & 0x0f) | 0x80
  digest[8] = ((digest[8] as number) & 0x3f) | 0x80
  const hex = bytesToHex(digest)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
