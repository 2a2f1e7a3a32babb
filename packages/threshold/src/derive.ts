import { fromNative, ThresholdError } from './errors.ts'
import { addon } from './native.ts'
import type { Curve } from './types.ts'

/**
 * The public key at `path` below a key. Needs no share: every node and any watcher computes the
 * same.
 *
 * - secp256k1: BIP32 public derivation (CKDpub).
 * - Ed25519: the additive tweak of this package's README, frozen by
 *   `test/vectors/ed25519-derivation.json`.
 *
 * @param path Indices 0..2^31-1 (non-hardened), at most 32; empty gives `publicKey` itself.
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
 * The addon would turn a fraction or a negative number into another index without a word.
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
