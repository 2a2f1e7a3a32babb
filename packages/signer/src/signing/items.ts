import { assemble, signing, type Registry, type SignatureBytes, type SignedTransaction, type SigningItem } from '@custody/chains'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { fromHex, hex, sha256, sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { Verdict } from '../policy/order.ts'
import type { Binding } from '../transport/envelope.ts'

/** What is signed, item by item, and how it is named in every message about it. */
export function itemsOf(registry: Registry, { order, key }: Verdict): SigningItem[] {
  return signing(registry, order.unsigned, key.publicKeyAt)
}

export function bindingOf(
  verdict: Verdict, items: readonly SigningItem[], session: string, round: number, participants: readonly number[]
): Binding {
  return {
    session,
    round,
    key: verdict.key.key_id,
    path: sha256hex(JSON.stringify(items.map((item) => item.path))),
    digest: sha256hex(JSON.stringify(items.map((item) => hex(item.message)))),
    participants: [...participants],
  }
}

/** One session id per item, from fresh bytes of both participants and from what is signed. */
export function sessionIds(
  base: { key: string; epoch: number; participants: readonly number[]; fresh: readonly string[]; unsigned: string }, count: number
): Buffer[] {
  const text = JSON.stringify([base.key, base.epoch, base.participants, base.fresh, base.unsigned])
  return Array.from({ length: count }, (_, at) => sha256('custody/sign-session/v1\n', text, `\n${at}`))
}

export interface WireSignature { signature: string; recovery_id: number | null }
export const toWire = (signatures: readonly SignatureBytes[]): WireSignature[] => signatures.map(({ signature, recoveryId }) => ({
  signature: hex(signature), recovery_id: recoveryId,
}))
export const fromWire = (signatures: readonly WireSignature[]): SignatureBytes[] => signatures.map(({ signature, recovery_id }) => ({
  signature: fromHex(signature), recoveryId: recovery_id,
}))

/** Threshold rule 12: a second library verifies every signature before it counts, low-S and recovery id included. */
export function verifyItems(curve: 'secp256k1' | 'ed25519', items: readonly SigningItem[], signatures: readonly SignatureBytes[]): void {
  if (items.length !== signatures.length) throw new Refusal('SESSION_ABORTED', 'Signatures are missing')
  items.forEach(({ message, publicKey }, at) => {
    const { signature, recoveryId } = signatures[at]!
    let good = signature.length === 64
    if (curve === 'ed25519') good &&= recoveryId === null && ed25519.verify(signature, message, publicKey, { zip215: false })
    else {
      good &&= recoveryId !== null && secp256k1.verify(signature, message, publicKey, { prehash: false, lowS: true })
      const recovered = (): Uint8Array =>
        secp256k1.Signature.fromBytes(signature).addRecoveryBit(recoveryId!).recoverPublicKey(message).toBytes(true)
      good &&= hex(recovered()) === hex(publicKey)
    }
    if (!good) throw new Refusal('SESSION_ABORTED', 'A finished signature does not verify')
  })
}

/**
 * For transactions `assemble` is that second verification: with noble, low-S, against the key at each path; verifying costs 4 ms and is
 * not done twice.
 */
export function finish(registry: Registry, verdict: Verdict, signatures: SignatureBytes[]): SignedTransaction {
  return assemble(registry, verdict.order.unsigned, signatures, verdict.key.publicKeyAt)
}
