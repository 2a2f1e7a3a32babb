import { createPublicKey, verify } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'

import type { Curve, SignResult } from './types.ts'

/** DER prefix of an Ed25519 SubjectPublicKeyInfo (RFC 8410). */
const ED25519_SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/**
 * Verifies a signature with code that shares nothing with the engine that created it: OpenSSL for
 * Ed25519, noble for secp256k1 (Node's OpenSSL interface does not accept plain digests). High s is
 * rejected.
 */
export function verifySignature(
  curve: Curve,
  publicKey: Uint8Array,
  message: Uint8Array,
  { signature, recoveryId }: SignResult,
): boolean {
  if (signature.length !== 64) return false
  if (curve === 'ed25519') {
    const der = Buffer.concat([ED25519_SPKI_PREFIX, publicKey])
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    return recoveryId === null && verify(null, message, key, signature)
  }
  if (recoveryId === null) return false
  // Recovery with a comparison is a verification: R is rebuilt from r and the id, then Q = r⁻¹(sR -
  // zG).
  const parsed = secp256k1.Signature.fromBytes(signature, 'compact')
  if (parsed.hasHighS()) return false
  const recovered = parsed.addRecoveryBit(recoveryId).recoverPublicKey(message).toBytes(true)
  return Buffer.from(recovered).equals(publicKey)
}
