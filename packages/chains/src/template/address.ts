import { sha256 } from '@noble/hashes/sha2.js'
import { bech32 } from '@scure/base'
import { refusedTag } from '../assertions.ts'
import type { Network, Validation } from '../types.ts'

/** What addresses begin with, so that one of another chain is not taken for one of this. */
const PREFIX = 'tmpl'
export const HASH_BYTES = 20

/**
 * Address of a compressed secp256k1 key (33 bytes): the first 20 bytes of its hash, with a
 * checksum.
 */
export function address(_network: Network, publicKey: Uint8Array): string {
  return spell(sha256(publicKey).subarray(0, HASH_BYTES))
}

/** An address as text. */
export function spell(hash: Uint8Array): string {
  return bech32.encode(PREFIX, bech32.toWords(hash))
}

/** What an address stands for; null where it is none. */
export function read(text: string): Uint8Array | null {
  const decoded = bech32.decodeUnsafe(text)
  const hash = decoded?.prefix === PREFIX ? bech32.fromWordsUnsafe(decoded.words) : undefined
  return hash?.length === HASH_BYTES ? hash : null
}

/**
 * Answers the one spelling that all of the platform compares by, or the reason in words that a user
 * understands.
 */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const tag = refusedTag(addressTag)
  if (tag) return tag
  const hash = read(text)
  if (!hash)
    return {
      valid: false,
      reason: `is not an address of this network: they start with ${PREFIX}1, and the checksum must match`,
    }
  if (hash.every((byte) => byte === 0))
    return { valid: false, reason: 'is the zero address, which has no private key' }
  return { valid: true, address: spell(hash), address_tag: null }
}
