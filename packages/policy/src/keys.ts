import { ed25519 } from '@noble/curves/ed25519.js'
import { p256 } from '@noble/curves/nist.js'
import { base64 } from '@scure/base'
import { hexToBytes } from '@noble/hashes/utils.js'
import { PolicyError } from './error.ts'

export type KeyAlgorithm = 'Ed25519' | 'ES256'

/** A public key, parsed from its SPKI. */
export interface PublicKey {
  readonly alg: KeyAlgorithm
  /** Ed25519: 32 bytes. ES256: the uncompressed point, 65 bytes. */
  readonly bytes: Uint8Array
}

/** DER before the key bytes (RFC 8410, section 4; RFC 5480, section 2). No other form is accepted. */
const PREFIXES: readonly (readonly [KeyAlgorithm, Uint8Array, number])[] = [
  ['Ed25519', hexToBytes('302a300506032b6570032100'), 32],
  ['ES256', hexToBytes('3059301306072a8648ce3d020106082a8648ce3d030107034200'), 65],
]

function decode(text: string): Uint8Array | null {
  try {
    return base64.decode(text)
  } catch {
    return null
  }
}

/** Throws if the bytes are not a public key whose signatures only its owner can create. */
function assertUsable(alg: KeyAlgorithm, bytes: Uint8Array): void {
  if (alg === 'ES256') {
    p256.Point.fromBytes(bytes).assertValidity()
    return
  }
  // A key of small order accepts one signature for many messages.
  const point = ed25519.Point.fromBytes(bytes, false)
  if (point.isSmallOrder() || !point.isTorsionFree()) throw new TypeError('small order')
}

/**
 * Parses a public key: base64 (with padding) of a DER SubjectPublicKeyInfo of an Ed25519 key or of
 * an uncompressed P-256 point.
 * @param alg expected algorithm
 * @param path of the field, for the error
 * @throws PolicyError `KEY`
 */
export function parseSpki(alg: KeyAlgorithm, spki: string, path: string): PublicKey {
  const der = decode(spki)
  const found = PREFIXES.find(
    ([, prefix, length]) =>
      der?.length === prefix.length + length && prefix.every((byte, at) => der[at] === byte),
  )
  if (der === null || found === undefined)
    throw new PolicyError(
      'KEY',
      path,
      'must be base64 of a SubjectPublicKeyInfo of an Ed25519 or P-256 key',
    )
  const [kind, prefix] = found
  if (kind !== alg) throw new PolicyError('KEY', path, `is a key for ${kind}, not for ${alg}`)
  const bytes = der.slice(prefix.length)
  try {
    assertUsable(kind, bytes)
  } catch {
    throw new PolicyError('KEY', path, 'is not a valid point of its curve')
  }
  return { alg, bytes }
}

/**
 * Verifies a signature by RFC 8032, section 5.1.7, or FIPS 186-5 with SHA-256.
 *
 * An Ed25519 signature has one valid form: S is below the group order, R is canonical and without a
 * part of small order, so implementations with and without cofactor agree. An ES256 signature has
 * two: with (r, s), (r, n − s) is valid too, and both are accepted, because hardware keys and
 * WebAuthn create either. Therefore, nothing is identified by a signature: statements are identified
 * by the hash of their bytes.
 *
 * @param raw 64 bytes: R ‖ S, or r ‖ s (IEEE P1363)
 * @param format `der` (ES256 only): the DER form of r and s (RFC 3279, section 2.2.3)
 */
export function isSignatureOf(
  key: PublicKey,
  bytes: Uint8Array,
  raw: Uint8Array,
  format: 'compact' | 'der' = 'compact',
): boolean {
  if (format === 'compact' && raw.length !== 64) return false
  try {
    if (key.alg === 'ES256')
      return p256.verify(raw, bytes, key.bytes, { lowS: false, prehash: true, format })
    return (
      format === 'compact' &&
      ed25519.verify(raw, bytes, key.bytes, { zip215: false }) &&
      ed25519.Point.fromBytes(raw.subarray(0, 32), false).isTorsionFree()
    )
  } catch {
    return false
  }
}

/**
 * Verifies a signature as {@link isSignatureOf}.
 * @param signature base64 with padding of 64 bytes
 */
export function isSignedBy(key: PublicKey, bytes: Uint8Array, signature: string): boolean {
  const raw = decode(signature)
  return raw !== null && isSignatureOf(key, bytes, raw)
}
