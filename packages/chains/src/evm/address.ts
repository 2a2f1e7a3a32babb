import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { refusedTag } from '../assertions.ts'
import { ChainError, type Network, type Validation } from '../types.ts'

/** Returns the EIP-55 address of a compressed secp256k1 key. */
export function address(_network: Network, publicKey: Uint8Array): string {
  const [, ...point] = secp256k1.Point.fromBytes(publicKey).toBytes(false)
  return checksummed(bytesToHex(keccak_256(Uint8Array.from(point)).subarray(12)))
}

/**
 * Applies EIP-55 to 40 lower-case digits: a letter becomes a capital if the corresponding digit of
 * the text's hash is 8 or more.
 */
function checksummed(digits: string): `0x${string}` {
  const hash = bytesToHex(keccak_256(utf8ToBytes(digits)))
  return `0x${[...digits].map((digit, at) => (Number.parseInt(hash[at] as string, 16) >= 8 ? digit.toUpperCase() : digit)).join('')}`
}

const LOWER = /^0x[0-9a-f]{40}$/
const UPPER = /^0x[0-9A-F]{40}$/

/**
 * Accepts all-lower-case, all-upper-case and EIP-55 spellings and returns the EIP-55 spelling.
 * Rejects the zero address, because its key is unknown.
 */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const refused = refusedTag(addressTag)
  if (refused) return refused
  if (!/^0x[0-9a-fA-F]{40}$/.test(text))
    return { valid: false, reason: 'must be 0x followed by 40 hexadecimal digits' }
  if (!LOWER.test(text) && !UPPER.test(text) && text !== checksummed(text.slice(2).toLowerCase())) {
    return { valid: false, reason: 'EIP-55 checksum does not match: a character may be mistyped' }
  }
  if (/^0x0{40}$/.test(text))
    return { valid: false, reason: 'the zero address cannot receive transfers' }
  return { valid: true, address: checksummed(text.slice(2).toLowerCase()), address_tag: null }
}

/** Returns the EIP-55 spelling of any 20-byte hex address. */
export function canonical(text: string): `0x${string}` {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new ChainError('ADDRESS', 'is not an EVM address')
  return checksummed(text.slice(2).toLowerCase())
}

/** Returns the key by which addresses are compared, which ignores the capitals of the checksum. */
export const key = (text: string): string => text.toLowerCase()

export const format = (_network: Network, text: string): string | null =>
  /^0x[0-9a-f]{40}$/i.test(text) ? `evm ${key(text)}` : null
