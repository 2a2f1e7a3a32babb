import { fromNative, ThresholdError } from './errors.ts'
import { addon } from './native.ts'
import type { Curve } from './types.ts'

/**
 * Derives the public key at `path` below a key. It needs no share, so every node and every observer
 * computes the same key.
 *
 * - secp256k1: BIP32 public derivation (CKDpub).
 * - Ed25519: the additive tweak of this package's README, fixed by
 *   `testing/vectors/ed25519-derivation.json`.
 *
 * @param path indices 0..2^31-1 (non-hardened), at most 32; an empty path returns `publicKey`
 *   itself
 * @throws {ThresholdError} BAD_ARGUMENT
 */
export function derivePublicKey(
  curve: Curve,
  publicKey: Uint8Array,
  chainCode: Uint8Array,
  path: readonly number[],
): Uint8Array {
  try {
    return addon.derivePublicKey(curve, publicKey, chainCode, checkedPath(path))
  } catch (error) {
    throw fromNative(error)
  }
}

/**
 * Checks a path. The addon would silently convert a fraction or a negative number to another index.
 * @throws {ThresholdError} BAD_ARGUMENT
 */
export function checkedPath(path: readonly number[]): number[] {
  for (const index of path) {
    if (!Number.isInteger(index) || index < 0 || index > 0x7fffffff) {
      throw new ThresholdError(
        'BAD_ARGUMENT',
        'path index is not in 0..2^31-1: only non-hardened children exist',
      )
    }
  }
  return [...path]
}
