import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import { base58, createBase58check } from '@scure/base'
import { refusedTag } from '../assertions.ts'
import { ChainError, type Network, type Validation } from '../types.ts'

const base58check = createBase58check(sha256)
const VERSION = 0x41
const CHECKED_BYTES = 25
/**
 * Length of an address: a version byte and the 20 bytes that the same key's address on EVM networks
 * has.
 */
const ADDRESS_BYTES = 21

/**
 * Returns the address of a key: base58check of 0x41 and the last 20 bytes of the key's Keccak-256
 * hash.
 */
export function address(_network: Network, publicKey: Uint8Array): string {
  const uncompressed = secp256k1.Point.fromBytes(publicKey).toBytes(false)
  return base58check.encode(
    concatBytes(Uint8Array.of(VERSION), keccak_256(uncompressed.subarray(1)).subarray(12)),
  )
}

/** Accepts the base58 form only. Rejects the zero address, because its key is unknown. */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const refused = refusedTag(addressTag)
  if (refused) return refused
  if (/^(?:0x|41)[0-9a-fA-F]{40}$/.test(text)) {
    return {
      valid: false,
      reason:
        'has the hexadecimal form, which is not accepted because it has no checksum: use the form that starts with T',
    }
  }
  if (!/^[1-9A-HJ-NP-Za-km-z]{25,40}$/.test(text))
    return { valid: false, reason: 'must be 34 characters of base58 that start with T' }
  const bytes = decodeBase58(text)
  if (bytes === null)
    return { valid: false, reason: 'checksum does not match: a character may be mistyped' }
  if (bytes.length !== ADDRESS_BYTES || bytes[0] !== VERSION) {
    return {
      valid: false,
      reason: 'is an address of another network: addresses of this one start with T',
    }
  }
  if (bytes.subarray(1).every((byte) => byte === 0))
    return { valid: false, reason: 'the zero address cannot receive transfers' }
  return { valid: true, address: text, address_tag: null }
}

function decodeBase58(text: string): Uint8Array | null {
  try {
    const bytes = base58.decode(text)
    return bytes.length <= CHECKED_BYTES ? base58check.decode(text) : null
  } catch {
    return null
  }
}

/**
 * Returns the 21 bytes of a base58 address.
 * @throws ChainError `ADDRESS`
 */
export function addressBytes(text: string): Uint8Array {
  const bytes = /^T[1-9A-HJ-NP-Za-km-z]{33}$/.test(text) ? decodeBase58(text) : null
  if (bytes === null || bytes.length !== ADDRESS_BYTES || bytes[0] !== VERSION)
    throw new ChainError('ADDRESS', 'is not a Tron address')
  return bytes
}

/**
 * Returns the base58 form of 21 bytes.
 * @throws ChainError `ADDRESS`
 */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length !== ADDRESS_BYTES || bytes[0] !== VERSION)
    throw new ChainError('ADDRESS', 'is not a Tron address')
  return base58check.encode(bytes)
}

/** Returns the 21 bytes in the hex form of nodes: 41 and 40 more digits. */
export function addressHex(text: string): string {
  return bytesToHex(addressBytes(text))
}

/** Returns the address of 42 hex digits with the version, or 40 digits without it, as in logs. */
export function addressOfHex(hex: string): string {
  if (!/^(?:41)?[0-9a-fA-F]{40}$/.test(hex))
    throw new ChainError('ADDRESS', 'is not a Tron address')
  return addressText(hexToBytes(hex.length === 40 ? `41${hex}` : hex))
}
