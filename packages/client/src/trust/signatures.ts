import { ed25519 } from '@noble/curves/ed25519.js'
import { hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import type { NodeSignature, PinnedTrust } from './trust.ts'

/**
 * Verifies by RFC 8032's own rule, because ZIP 215 would accept more encodings than nodes create.
 */
function isSigned(signature: Uint8Array, text: Uint8Array, identity: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, text, identity, { zip215: false })
  } catch {
    return false
  }
}

/**
 * Returns the nodes that signed these bytes, each once. Signatures are the nodes' own Ed25519
 * signatures, in hex.
 */
export function signersOf(
  trust: PinnedTrust,
  text: string,
  signatures: readonly unknown[],
): number[] {
  const signed = new Set<number>()
  for (const each of signatures) {
    const { node, signature } = (each ?? {}) as Partial<NodeSignature>
    const identity = typeof node === 'number' ? trust.identities.get(node) : undefined
    if (
      identity === undefined ||
      typeof signature !== 'string' ||
      !/^[0-9a-f]{128}$/.test(signature)
    )
      continue
    if (isSigned(hexToBytes(signature), utf8ToBytes(text), identity)) signed.add(node as number)
  }
  return [...signed].sort((a, b) => a - b)
}
