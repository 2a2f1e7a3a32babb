import type { Curve, SignatureBytes, SigningItem } from '@custody/chains'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'

/**
 * Threshold rule 12: a second library verifies every signature before it is used, including low-S
 * and the recovery ID.
 */
export function verifyItems(
  curve: Curve,
  items: readonly SigningItem[],
  signatures: readonly SignatureBytes[],
): void {
  if (items.length !== signatures.length)
    throw new Refusal('SESSION_ABORTED', 'Signatures are missing')
  items.forEach(({ message, publicKey }, at) => {
    const { signature, recoveryId } = signatures[at]!
    let good = signature.length === 64
    if (curve === 'ed25519')
      good &&=
        recoveryId === null && ed25519.verify(signature, message, publicKey, { zip215: false })
    else {
      good &&=
        recoveryId !== null &&
        secp256k1.verify(signature, message, publicKey, { prehash: false, lowS: true })
      const recovered = (): Uint8Array =>
        secp256k1.Signature.fromBytes(signature)
          .addRecoveryBit(recoveryId!)
          .recoverPublicKey(message)
          .toBytes(true)
      good &&= hex(recovered()) === hex(publicKey)
    }
    if (!good) throw new Refusal('SESSION_ABORTED', 'A finished signature does not verify')
  })
}
