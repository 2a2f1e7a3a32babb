import { createHash } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { signRecoverable } from 'tiny-secp256k1'
import { ALPHABET, base58 } from '../base58.ts'
import { publicKeyOf } from '../public-key.ts'

const HEX = /^41[0-9a-f]{40}$/

export function sha256(...parts: Uint8Array[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Converts 42 hexadecimal digits to the base58check form. */
export function toBase58(hex: string): string {
  const bytes = Buffer.from(hex, 'hex')
  return base58(Buffer.concat([bytes, sha256(sha256(bytes)).subarray(0, 4)]))
}

/** Converts either form to 42 lower-case digits; undefined if the text is not an address. */
export function toHex(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  if (HEX.test(text.toLowerCase())) return text.toLowerCase()
  if (!/^T[1-9A-HJ-NP-Za-km-z]{33}$/.test(text)) return undefined
  let value = 0n
  for (const letter of text) value = value * 58n + BigInt(ALPHABET.indexOf(letter))
  const digits = value.toString(16)
  if (digits.length !== 50 || !digits.startsWith('41')) return undefined
  const hex = digits.slice(0, 42)
  return toBase58(hex) === text ? hex : undefined
}

/** Returns the address of an uncompressed public key. */
function addressOf(publicKey: Uint8Array): string {
  return `41${Buffer.from(keccak_256(publicKey.subarray(1)).subarray(12)).toString('hex')}`
}

export function addressOfSecret(secret: Uint8Array): string {
  return addressOf(publicKeyOf(secret))
}

/**
 * Returns the address of the key that made r‖s‖v over a digest; undefined if no key can have made
 * it.
 */
export function recover(signature: Uint8Array, digest: Uint8Array): string | undefined {
  if (signature.length !== 65) return undefined
  const v = signature[64] as number
  const id = v >= 27 ? v - 27 : v
  if (id > 3) return undefined
  try {
    return addressOf(
      secp256k1.Signature.fromBytes(signature.subarray(0, 64))
        .addRecoveryBit(id)
        .recoverPublicKey(digest)
        .toBytes(false),
    )
  } catch {
    return undefined
  }
}

export function sign(digest: Uint8Array, secret: Uint8Array): Buffer {
  const { signature, recoveryId } = signRecoverable(digest, secret)
  return Buffer.concat([signature, Uint8Array.of(27 + recoveryId)])
}
