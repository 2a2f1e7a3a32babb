import { secp256k1 } from '@noble/curves/secp256k1.js'
import { getAddress, isAddress } from 'viem/utils'
import { publicKeyToAddress } from 'viem/accounts'
import { refusedTag } from '../shapes.ts'
import { ChainError, type Network, type Validation } from '../types.ts'

/** EIP-55 address of a compressed secp256k1 key. */
export function address(_network: Network, publicKey: Uint8Array): string {
  const uncompressed = secp256k1.Point.fromBytes(publicKey).toHex(false)
  return publicKeyToAddress(`0x${uncompressed}`)
}

const LOWER = /^0x[0-9a-f]{40}$/
const UPPER = /^0x[0-9A-F]{40}$/

/**
 * Accepts all-lower-case, all-upper-case and EIP-55 spellings; answers EIP-55.
 * The zero address is refused: nobody holds its key.
 */
export function validate(_network: Network, text: string, addressTag?: string | null): Validation {
  const refused = refusedTag(addressTag)
  if (refused) return refused
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) return { valid: false, reason: 'must be 0x followed by 40 hexadecimal digits' }
  if (!LOWER.test(text) && !UPPER.test(text) && !isAddress(text, { strict: true })) {
    return { valid: false, reason: 'EIP-55 checksum does not match: a character may be mistyped' }
  }
  if (/^0x0{40}$/.test(text)) return { valid: false, reason: 'the zero address cannot receive transfers' }
  return { valid: true, address: getAddress(text.toLowerCase()), address_tag: null }
}

/** EIP-55 spelling of any 20-byte hex address. */
export function canonical(text: string): `0x${string}` {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new ChainError('ADDRESS', 'is not an EVM address')
  return getAddress(text.toLowerCase())
}

/** Addresses are compared without regard to their checksum's capitals. */
export const key = (text: string): string => text.toLowerCase()

export const format = (_network: Network, text: string): string | null => (/^0x[0-9a-f]{40}$/i.test(text) ? `evm ${key(text)}` : null)
