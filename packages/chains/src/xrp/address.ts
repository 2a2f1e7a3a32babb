import { ripemd160 } from '@noble/hashes/legacy.js'
import { sha256 } from '@noble/hashes/sha2.js'
import {
  encodeAccountID,
  isValidClassicAddress,
  isValidXAddress,
  xAddressToClassicAddress,
} from 'ripple-address-codec'
import type { Tags } from '../family.ts'
import { hasRealCoins } from '../mode.ts'
import type { Network, Validation } from '../types.ts'

const TAG_MAX = 0xffff_ffff
/** ACCOUNT_ZERO and ACCOUNT_ONE, whose keys are unknown, so a payment to them is lost. */
const BLACK_HOLES = new Set(['rrrrrrrrrrrrrrrrrrrrrhoLvTp', 'rrrrrrrrrrrrrrrrrrrrBZbvji'])

/**
 * Returns the classic address of a compressed secp256k1 key. An account's id is the key's HASH160.
 */
export function address(_network: Network, publicKey: Uint8Array): string {
  return encodeAccountID(ripemd160(sha256(publicKey)))
}

/** Parses a destination tag; null if it is invalid. Tag 0 is a valid tag. */
export function readTag(text: string): number | null {
  if (!/^(?:0|[1-9]\d{0,9})$/.test(text)) return null
  const tag = Number(text)
  return tag <= TAG_MAX ? tag : null
}

/** Destination tags. An X-address contains its tag, or states that it has none. */
export const tags: Tags = {
  isWithin: (text) => /^[XT]/.test(text),
  split(text) {
    if (!/^[XT]/.test(text) || !isValidXAddress(text)) return null
    const { classicAddress: address, tag } = xAddressToClassicAddress(text)
    return tag === false ? null : { address, tag: String(tag) }
  },
  isLike: (text) => readTag(text) !== null,
}

/** Accepts classic addresses and X-addresses. Returns the classic spelling with a separate tag. */
export function validate(network: Network, text: string, addressTag?: string | null): Validation {
  const input = addressTag ?? null
  const tag = input === null ? null : readTag(input)
  if (input !== null && tag === null) {
    return {
      valid: false,
      reason: `address_tag must be a whole number from 0 to ${TAG_MAX}`,
      field: 'address_tag',
    }
  }
  let classic = text
  let inside: number | null = null
  if (/^[XT]/.test(text)) {
    if (!isValidXAddress(text))
      return { valid: false, reason: 'is not an X-address: checksum or length does not match' }
    const decoded = xAddressToClassicAddress(text)
    // The prefix states only the network for which the address was displayed; the account is the
    // same on every network.
    if (decoded.test && hasRealCoins(network.mode))
      return { valid: false, reason: 'belongs to a test network (T…); this one uses X…' }
    classic = decoded.classicAddress
    inside = decoded.tag === false ? null : decoded.tag
    if (tag !== null && inside !== tag) {
      return {
        valid: false,
        reason:
          inside === null
            ? 'address_tag: must be omitted, because the X-address states that it has none'
            : `address_tag differs from the tag ${inside} inside the X-address`,
        field: 'address_tag',
      }
    }
  } else if (!isValidClassicAddress(text)) {
    return {
      valid: false,
      reason: 'is not an XRP Ledger address: it starts with r (or X) and its checksum must match',
    }
  }
  if (BLACK_HOLES.has(classic))
    return { valid: false, reason: 'is a special account that has no private key' }
  const effective = tag ?? inside
  return {
    valid: true,
    address: classic,
    address_tag: effective === null ? null : String(effective),
  }
}
