import { secp256k1 } from '@noble/curves/secp256k1.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { ChainError, type SignatureBytes, type SigningItem } from './types.ts'

/**
 * The one signature of a chain that recovers who signed: 64 bytes, low-S, by the key at the path, with the recovery id
 * that leads to this key and no other.
 * @throws ChainError `SIGNATURE`
 */
export function recoverableSignature(
  item: SigningItem, signatures: readonly SignatureBytes[]
): { signature: Uint8Array; recoveryId: 0 | 1 } {
  const [part, more] = signatures
  if (!part || more || part.signature.length !== 64) throw new ChainError('SIGNATURE', 'exactly one 64-byte signature is needed')
  const { signature, recoveryId } = part
  if (recoveryId !== 0 && recoveryId !== 1) throw new ChainError('SIGNATURE', 'recovery id must be 0 or 1')
  if (signerOf(signature, recoveryId, item.message) !== bytesToHex(item.publicKey)) {
    throw new ChainError('SIGNATURE', 'does not verify, or its recovery id names another key')
  }
  return { signature, recoveryId }
}

/**
 * The compressed key, as hex, that a low-S signature recovers; null where there is none. It has signed: recovery solves for
 * the key the equation that verification checks, which would cost as much again.
 */
function signerOf(signature: Uint8Array, recoveryId: 0 | 1, message: Uint8Array): string | null {
  try {
    const parsed = secp256k1.Signature.fromBytes(signature)
    return parsed.hasHighS() ? null : bytesToHex(parsed.addRecoveryBit(recoveryId).recoverPublicKey(message).toBytes(true))
  } catch {
    return null
  }
}
