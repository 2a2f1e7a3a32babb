import { bytesToHex } from '@noble/hashes/utils.js'
import { secp256k1Signer } from './secp256k1.ts'
import { ChainError, type SignatureBytes, type SigningItem } from './types.ts'

/**
 * Checks the signature for a chain whose signatures identify the signer: exactly one, of 64 bytes,
 * low-S, by the key at the path, with the recovery id that leads to this key.
 * @throws ChainError `SIGNATURE`
 */
export function recoverableSignature(
  item: SigningItem,
  signatures: readonly SignatureBytes[],
): { signature: Uint8Array; recoveryId: 0 | 1 } {
  const [part, more] = signatures
  if (!part || more || part.signature.length !== 64)
    throw new ChainError('SIGNATURE', 'exactly one 64-byte signature is required')
  const { signature, recoveryId } = part
  if (recoveryId !== 0 && recoveryId !== 1)
    throw new ChainError('SIGNATURE', 'recovery id must be 0 or 1')
  const signer = secp256k1Signer(signature, recoveryId, item.message)
  if (!signer || bytesToHex(signer) !== bytesToHex(item.publicKey)) {
    throw new ChainError('SIGNATURE', 'does not verify, or its recovery id belongs to another key')
  }
  return { signature, recoveryId }
}
