import { sha256 } from '@noble/hashes/sha2.js'
import { bech32 } from '@scure/base'
import { refusedTag } from '../assertions.ts'
import type { Network, Validation } from '../types.ts'

/**
 * Prefix of every address, so that an address of another chain cannot be mistaken for one of this
 * chain.
 */
const PREFIX = 'tmpl'
/** Length of the hash in an address, in bytes. */
export const HASH_BYTES = 20

/**
 * Returns the address of a compressed secp256k1 key (33 bytes): the first 20 bytes of its SHA-256
 * hash, as bech32 with a checksum.
 */
export function address(_network: Network, publicKey: Uint8Array): string {
  return spell(sha256(publicKey).subarray(0, HASH_BYTES))
}

/** Encodes the 20 bytes of an address as text. */
export function spell(hash: Uint8Array): string {
  return bech32.encode(PREFIX, bech32.toWords(hash))
}

/**
 * Returns the 20 bytes that an address encodes; null if the text is not an address of this chain.
 */
export function read(text: string): Uint8Array | null {
  const decoded = bech32.decodeUnsafe(text)
  const hash = decoded?.prefix === PREFIX ? bech32.fromWordsUnsafe(decoded.words) : undefined
  return hash?.length === HASH_BYTES ? hash : null
}

/**
 * Validates an address and returns its one canonical spelling, by which the whole platform compares
 * addresses; or a reason in words that a user understands.
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
